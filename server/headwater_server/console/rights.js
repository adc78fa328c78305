// What the caller may do, so that no button stands there that would be refused. Until it is known, nothing may be done.

import { catalogPath, get, realmPath } from "./api.js";
import { useResource } from "./resource.js";

const NOTHING = {};

/** {may, me}: what the caller may do in a realm. */
export function useRealmRights(realm) {
  const me = useResource(realm ? `me ${realm}` : null, (signal) => get(realmPath(realm, "me"), {}, signal));
  return { may: me.data?.may ?? NOTHING, me: me.data, error: me.error };
}

/** What the caller may do in a catalog, on one of its references; none is the default branch. */
export function useCatalogRights(realm, catalog, ref) {
  const me = useResource(`me ${realm} ${catalog} ${ref ?? ""}`, (signal) => get(catalogPath(realm, catalog, "me"), { ref: isPlain(ref) ? ref : "" }, signal));
  return { may: me.data?.may ?? NOTHING, me: me.data, error: me.error };
}

/** Rights are held on names: of a commit, or of some steps back, nothing can be changed in any case. */
const isPlain = (ref) => ref && ref !== "-" && !/[@~*^]/.test(ref);
