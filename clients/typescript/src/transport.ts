import { ConnectionError, errorOf } from "./errors.js";

export interface ClientOptions {
  /** Such as `http://127.0.0.1:8765`. */
  url: string;
  /** A key, or the owner's token. It is sent to `url` and nowhere else. */
  key: string;
  /** Milliseconds to wait for an answer; 30,000 if not given. */
  timeout?: number;
  /** Allow http:// to another machine. The key and all memories go there unencrypted. */
  insecure?: boolean;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string>;
  /** Whether it may be sent again after a fault, as what only reads may be. */
  repeatable?: boolean;
  /** Send a key by which the server recognises a repetition; so it may be repeated too. */
  keyed?: boolean;
  signal?: AbortSignal;
}

const PAUSES_MS = [100, 400];
const LONGEST_PAUSE_MS = 5_000;
const DEFAULT_TIMEOUT_MS = 30_000;
/** Parts of a path that `URL` resolves, so that another path would be called. */
const DOTS = /\/(\.|%2e){1,2}(?=[/?#]|$)/i;
const PASSING_STATUSES = new Set([429, 502, 503, 504]);

/** Requests to one server, repeated where that is safe. */
export class Transport {
  readonly url: string;
  readonly #key: string;
  readonly #timeout: number;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.url = checkUrl(options.url, options.insecure ?? false);
    if (typeof options.key !== "string" || !/^[\x21-\x7e]+$/.test(options.key)) {
      throw new TypeError("no key, or one with blanks in it: `eunoe key create` makes one");
    }
    this.#key = options.key;
    this.#timeout = options.timeout ?? DEFAULT_TIMEOUT_MS;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** Send a request and return the JSON that it is answered with. */
  async json<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const response = await this.send(method, path, options);
    try {
      return (response.status === 204 ? undefined : await response.json()) as T;
    } catch (error) {
      throw new ConnectionError(`the answer of ${this.url} cannot be read`, error);
    }
  }

  /** Send a request and return its answer, if that is a success. */
  async send(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    if (DOTS.test(path)) throw new TypeError(`the id . or .. cannot be sent, since addresses leave it out: ${path}`);
    const request = this.#request(method, options);
    const address = this.url + path + queryOf(options.query);
    const pauses = options.repeatable || options.keyed ? PAUSES_MS : [];
    for (let attempt = 0; ; attempt++) {
      const pause = pauses[attempt];
      const response = await this.#attempt(address, request, options.signal, pause !== undefined);
      if (response?.ok) return response;
      if (response && (pause === undefined || !PASSING_STATUSES.has(response.status))) throw await errorOf(response);
      await response?.body?.cancel();
      await sleep(Math.min(Math.max(pause ?? 0, retryAfter(response)), LONGEST_PAUSE_MS));
    }
  }

  #request(method: string, options: RequestOptions): RequestInit {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#key}`, ...options.headers };
    if (options.keyed) headers["Idempotency-Key"] = crypto.randomUUID();
    const init: RequestInit = { method, headers, redirect: "error", credentials: "omit", cache: "no-store" };
    if (options.body === undefined) return init;
    headers["Content-Type"] ??= "application/json";
    return { ...init, body: typeof options.body === "string" ? options.body : JSON.stringify(options.body) };
  }

  /** One attempt: the answer, or nothing after a fault that may be tried again. */
  async #attempt(
    address: string,
    request: RequestInit,
    signal: AbortSignal | undefined,
    mayFail: boolean,
  ): Promise<Response | undefined> {
    const clock = new AbortController();
    const timer = setTimeout(() => clock.abort(), this.#timeout);
    const stop = () => clock.abort(signal?.reason);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
    try {
      return await this.#fetch(address, { ...request, signal: clock.signal });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (clock.signal.aborted) throw new ConnectionError(`${this.url} did not answer in time`, error);
      if (mayFail) return undefined;
      throw new ConnectionError(`no server answers at ${this.url}, or it sends elsewhere`, error);
    } finally {
      clearTimeout(timer);
    }
  }
}

function checkUrl(text: string, insecure: boolean): string {
  const url = new URL(text);
  if (!["http:", "https:"].includes(url.protocol)) throw new TypeError(`${text} is no address: write http://127.0.0.1:8765`);
  if (url.username || url.search || url.hash) throw new TypeError("an address has no name, key, ? or # in it");
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol === "http:" && !isLoopback && !insecure) {
    throw new TypeError(`${url.origin} would get the key and all memories unencrypted: use https://, or insecure: true`);
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function queryOf(query: Record<string, unknown> = {}): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === null
      ? []
      : (Array.isArray(value) ? value : [value]).map((each) => [name, scopeText(each)] as [string, string]),
  );
  return parts.length ? `?${new URLSearchParams(parts)}` : "";
}

/** A scope as its text, as addresses have it; any other value as it is. */
export function scopeText(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value as Record<string, string | number>)
    .map(([key, each]) => `${key}=${String(each).replaceAll("%", "%25").replaceAll("/", "%2F")}`)
    .join("/");
}

function retryAfter(response: Response | undefined): number {
  const seconds = Number(response?.headers.get("Retry-After"));
  return Number.isFinite(seconds) ? seconds * 1000 : 0;
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
