// Calls of the service's API: the token, faults as values of two kinds, and whether the server is there.
// A token lives in sessionStorage, so it ends with the tab, and goes nowhere but into the Authorization header.

const KEY = "skitter.token";
const PATIENCE = 15000;

export class Fault extends Error { // the server answered, and said no
  constructor(status, title, detail) {
    super(detail ? `${title}: ${detail}` : title);
    this.status = status;
  }
}

export class Unreachable extends Error { // no answer; nothing is known of what was asked
  constructor() {
    super("the server does not answer");
  }
}

export const access = { role: null, isOpen: true, ask: null };

export function token() {
  return sessionStorage.getItem(KEY) || "";
}

export function keepToken(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

export function isOperator() {
  return access.role === "operator";
}

// Paths are sent relative to the page, so that a proxy may serve it all under a folder of its own.
async function send(method, path, body, accept) {
  const headers = { accept };
  const given = token();
  if (given) headers.authorization = `Bearer ${given}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const options = { method, headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) };
  if (body !== undefined) options.body = JSON.stringify(body);
  try {
    return { given, answer: await fetch(path.slice(1), options) };
  } catch {
    throw new Unreachable();
  }
}

async function call(method, path, body, read = "json") {
  const { given, answer } = await send(method, path, body, read === "json" ? "application/json" : "text/plain");
  if (answer.status === 401) {
    // somebody may have entered a token while this call was under way: then it is simply made again
    if (given === token()) await access.ask(Boolean(given));
    return call(method, path, body, read);
  }
  try {
    if (answer.ok) return await answer[read]();
    throw await refusal(answer);
  } catch (error) {
    throw error instanceof Fault ? error : new Unreachable();
  }
}

async function refusal(answer) {
  const problem = await answer.json().catch(() => ({}));
  return new Fault(answer.status, problem.title || `The server answered ${answer.status}`, problem.detail);
}

export const get = (path) => call("GET", path);
export const text = (path) => call("GET", path, undefined, "text");
export const post = (path, body) => call("POST", path, body);
export const put = (path, body) => call("PUT", path, body);

// A path with its query; what is empty is left out.
export function at(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) =>
    value !== "" && value !== null && value !== undefined
  );
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}
