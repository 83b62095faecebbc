// What the page asks of its server.

export const TEXT_LIMIT = 800;

// An error as the server tells it.
export class Problem extends Error {
  constructor(status, content) {
    super(content.detail || content.title || `The server answered ${status}.`);
    this.status = status;
    this.code = content.code || "";
    this.hint = content.hint || "";
  }

  // Whether this server does not have what was asked for, rather than refusing it.
  get isMissing() {
    return this.status === 501 || ["no_such_path", "method_not_allowed"].includes(this.code);
  }
}

export const unreachable = () =>
  new Problem(0, { detail: "The server cannot be reached.", hint: "Is `eunoe serve` still running?" });

// A text of which the server has sent the beginning.
export class CutText {
  constructor(text, length) {
    this.text = text;
    this.length = length;
  }

  toString() {
    return this.text;
  }
}

function revive(_key, value) {
  if (value === null || typeof value !== "object" || !("cut" in value) || Object.keys(value).length !== 2) return value;
  return Array.isArray(value.cut)
    ? Object.assign(value.cut, { total: value.length })
    : new CutText(value.cut, value.length);
}

// How many there are, where a list may have been cut.
export const total = (list) => list.total ?? list.length;

export async function ask(method, path, { query = {}, body, textLimit = TEXT_LIMIT, keepalive = false, signal } = {}) {
  const headers = { "Eunoe-Text-Limit": String(textLimit) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(path, query), {
      method,
      headers,
      keepalive,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
  const text = await response.text();
  const content = readJson(text);
  if (response.ok) return content;
  if (response.status === 401) window.dispatchEvent(new Event("eunoe:signed-out"));
  throw new Problem(response.status, content ?? {});
}

function address(path, query) {
  const filled = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each) => [name, each]),
  );
  const parameters = new URLSearchParams(
    filled.filter(([, value]) => value !== "" && value !== null && value !== undefined),
  );
  return parameters.size ? `${path}?${parameters}` : path;
}

function readJson(text) {
  try {
    return text ? JSON.parse(text, revive) : null;
  } catch {
    return null;
  }
}

export const get = (path, query, options) => ask("GET", path, { query, ...options });
export const post = (path, body = {}, options) => ask("POST", path, { body, ...options });
export const patch = (path, body, options) => ask("PATCH", path, { body, ...options });
export const remove = (path, options) => ask("DELETE", path, options);

export const memoryPath = (id, rest = "") => `/v1/memories/${encodeURIComponent(id)}${rest}`;
