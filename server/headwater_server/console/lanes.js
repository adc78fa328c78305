// The lanes of a graph of commits: which line runs where beside each row. It is computed row by row, as pages come.

/** What the next row needs to know: the hash that each lane leads to, null for a free one. */
export const noLanes = () => [];

/**
 * Lay commits, newest first and children before parents, beside the lanes that are open.
 *
 * returns   [[{lane, width, before: [[from, to]], after: [[from, to]]}], lanes]: the rows, and what is open behind them.
 *           before runs from the top of a row to its middle, after from there to its end; a line with from = to is straight
 */
export function layCommits(commits, lanes) {
  const open = [...lanes];
  const rows = commits.map((commit) => {
    const before = [];
    let lane = open.indexOf(commit.hash);
    if (lane < 0) lane = freeLane(open);
    const isWaitedFor = [...open];
    isWaitedFor.forEach((hash, at) => {
      if (hash === null) return;
      before.push([at, hash === commit.hash ? lane : at]);
      if (hash === commit.hash) open[at] = null;
    });
    const passing = open.map((hash, at) => (hash === null ? -1 : at)).filter((at) => at >= 0);
    const after = passing.map((at) => [at, at]);
    commit.parents.forEach((parent, number) => {
      let target = open.indexOf(parent);
      if (target < 0) target = number === 0 && open[lane] == null ? lane : freeLane(open, lane);
      open[target] = parent;
      after.push([lane, target]);
    });
    while (open.length && open.at(-1) === null) open.pop();
    const width = Math.max(lane, ...before.flat(), ...after.flat()) + 1;
    return { lane, width, before, after };
  });
  return [rows, open];
}

/** The first lane that leads nowhere, other than one. */
function freeLane(open, not = -1) {
  let lane = 0;
  while ((open[lane] ?? null) !== null || lane === not) lane += 1;
  while (open.length <= lane) open.push(null);
  return lane;
}
