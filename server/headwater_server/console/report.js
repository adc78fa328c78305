// The HTML report of a run, drawn inside the console. It is parsed and never run: elements and attributes of a list are made anew, in a
// shadow tree, where its style holds for nothing else.

const ELEMENTS = new Set(
  ("a article aside b br caption circle code col colgroup dd defs desc details div dl dt em figcaption figure footer g h1 h2 h3 h4 header"
    + " i kbd li line main nav ol p path pattern polygon polyline pre rect section small span strong sub summary sup svg table tbody td text"
    + " tfoot th thead time title tr tspan ul").split(" "),
);
const ATTRIBUTES = new Set(
  ("aria-describedby aria-hidden aria-label aria-labelledby class colspan cx cy d datetime dir dominant-baseline dx dy fill"
    + " fill-opacity font-size font-weight height id lang offset opacity open pathLength points preserveAspectRatio r role rowspan rx ry"
    + " scope stroke stroke-dasharray stroke-linecap stroke-width tabindex text-anchor title transform viewBox width x x1 x2 y y1 y2").split(" "),
);

export function drawReport(room, text) {
  const styles = [];
  // a parser would try to apply a style at once, which the page's policy forbids, and complain
  const bare = text.replace(/<style[^>]*>([\s\S]*?)<\/style>/gi, (_, css) => {
    styles.push(css);
    return "";
  });
  const parsed = new DOMParser().parseFromString(bare, "text/html");
  const shadow = room.shadowRoot ?? room.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync([...styles.map(scoped), ".report-body { padding: 20px; }"].join("\n"));
  shadow.adoptedStyleSheets = [sheet];
  const body = document.createElement("div");
  body.className = `report-body ${parsed.body.className}`.trim();
  for (const child of parsed.body.childNodes) copyInto(body, child);
  shadow.replaceChildren(body);
}

/** Rules for a page's root hold for that of the shadow tree; nothing may be loaded from anywhere. */
function scoped(css) {
  return css
    .replace(/@import[^;]*;/g, "")
    .replace(/url\([^)]*\)/g, "none")
    .replace(/:root\b|\bhtml\b(?=\s*[,{])/g, ":host")
    .replace(/(^|[\s,}])body\b/g, "$1.report-body");
}

function copyInto(parent, node) {
  if (node.nodeType === Node.TEXT_NODE) {
    parent.append(node.data);
    return;
  }
  if (node.nodeType !== Node.ELEMENT_NODE || !ELEMENTS.has(node.localName)) return;
  // the console has its own main
  const made = document.createElementNS(node.namespaceURI, node.localName === "main" ? "div" : node.localName);
  for (const { name, value } of node.attributes) {
    if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
    else if (name === "href" && node.localName === "a" && value.startsWith("#")) made.dataset.to = value.slice(1);
  }
  if (made.dataset?.to) {
    made.setAttribute("role", "link");
    made.tabIndex = 0;
    made.addEventListener("click", () => made.getRootNode().getElementById(made.dataset.to)?.scrollIntoView());
  }
  for (const child of node.childNodes) copyInto(made, child);
  parent.append(made);
}

export function saveReport(text, name) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
