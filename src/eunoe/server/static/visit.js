// When the page was last looked at. Two times are stored, nothing else.

const PLACE = "eunoe.visit";
const PAUSE = 30 * 60_000; // after so long a silence it is another visit

function read() {
  try {
    const { since = 0, seen = 0 } = JSON.parse(localStorage.getItem(PLACE)) ?? {};
    return { since: Number(since) || 0, seen: Number(seen) || 0 };
  } catch {
    return { since: 0, seen: 0 };
  }
}

const write = (visit) => localStorage.setItem(PLACE, JSON.stringify(visit));

export function startVisit() {
  const { since, seen } = read();
  const now = Date.now();
  write({ since: now - seen > PAUSE ? seen : since, seen: now });
  document.addEventListener("visibilitychange", () => write({ ...read(), seen: Date.now() }));
}

// The end of the visit before this one; null at the first.
export function lastVisit() {
  const { since } = read();
  return since ? new Date(since).toISOString() : null;
}

// From now on only what comes later is new.
export function markSeen() {
  write({ since: Date.now(), seen: Date.now() });
}
