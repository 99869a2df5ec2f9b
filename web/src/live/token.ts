/** Where the tab keeps it. Storage belongs to one port of a host; a cookie would go to all of them, the target's too. */
const KEY = "throng-token";

/** Takes the token from the address, whose fragment is sent to nobody, and out of it; else the one that the tab has kept. */
function take(): string | null {
  const shown = new URLSearchParams(location.hash.slice(1)).get("token");
  if (shown) history.replaceState(null, "", location.pathname);
  try {
    if (shown) sessionStorage.setItem(KEY, shown);
    return shown ?? sessionStorage.getItem(KEY);
  } catch {
    return shown;
  }
}

const token = take();
// A token in the address of a page that is open already.
addEventListener("hashchange", () => location.reload());

/** What a request to throng shows. */
export const shown = (): Record<string, string> => (token ? { Authorization: `Bearer ${token}` } : {});
