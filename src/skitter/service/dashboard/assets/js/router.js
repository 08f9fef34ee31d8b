// Where we are, in the part of the address after #: every page has a link that leads back to it.

export function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decode);
  return { name: parts[0] || "overview", parts: parts.slice(1), query: new URLSearchParams(query) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function to(name, parts = [], query = {}) {
  const path = [name, ...parts].filter(Boolean).map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter(([, value]) => value);
  return `#/${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}

export const hostPage = (host) => to("hosts", [host]);
export const urlPage = (url) => to("urls", [], { url });

// The same place with another query, without a step in the history: filters while they are typed.
export function amend(name, parts, query) {
  history.replaceState(null, "", to(name, parts, query));
}
