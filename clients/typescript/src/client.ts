import { ConnectionError, EunoeError } from "./errors.js";
import { readEvents, readLines } from "./streams.js";
import { Transport, type ClientOptions, type RequestOptions } from "./transport.js";
import type * as T from "./types.js";

/** Whose memory is meant: `{ user: "anna" }`, or the same as text, `user=anna`. To read or forget, a user's scope means
 * everything within; any other means itself alone, unless it ends in `/*`, as in `agent=cook/*`. */
export type Scope = T.ObserveBody["scope"];
export type Scopes = Scope | Scope[];
export type Item = T.Atom | T.Message;
export type Hit = T.Hits["hits"][number];
export type MessageLike = Exclude<T.ObserveBody["messages"], unknown[]>;
export type MemoryLike = T.RememberManyBody["items"][number];
type Options<Body, Named extends keyof Body = never> = Omit<Body, "scope" | Named>;

export interface ReadOptions {
  /** The one scope that is named, where a user's means everything within. */
  exact?: boolean;
}

export interface ListOptions extends ReadOptions {
  kinds?: Array<"message" | "fact" | "observation">;
  labels?: string[];
  limit?: number;
  /** The `next` of the page before. */
  after?: string;
  retired?: boolean;
  newest?: boolean;
}

export interface LearnedEvent {
  /** Pass it as `after` to go on from here. */
  id: string;
  item: T.Atom;
}

/** A memory behind an address. Its methods are the verbs of the Python client. */
export class Eunoe {
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  get url(): string {
    return this.#transport.url;
  }

  /** Append messages to the log, word for word; all of them or, on an error, none. */
  async observe(scope: Scope, messages: MessageLike | MessageLike[]): Promise<T.Receipt[]> {
    const body: T.ObserveBody = { scope, messages: Array.isArray(messages) ? messages : [messages] };
    return (await this.#post<T.ObserveReply>("/v1/messages", body, { keyed: true })).receipts;
  }

  /** Keep one fact or observation. */
  async remember(scope: Scope, item: MemoryLike): Promise<T.Receipt> {
    const [receipt] = await this.rememberMany(scope, [item]);
    if (!receipt) throw new ConnectionError(`${this.url} gave no receipt`);
    return receipt;
  }

  /** Keep many at once; all of them or, on an error, none. */
  async rememberMany(scope: Scope, items: MemoryLike[], options: Options<T.RememberManyBody, "items"> = {}): Promise<T.Receipt[]> {
    const body: T.RememberManyBody = { scope, items, ...options };
    return (await this.#post<T.RememberManyReply>("/v1/memories", body, { keyed: true })).receipts;
  }

  /** Bring back what bears on a question, best first. */
  recall(scope: Scopes, query: string, options: Options<T.RecallBody, "query"> = {}): Promise<T.Hits> {
    return this.#read("/v1/recall", { scope, query, ...options });
  }

  /** What to put in front of the agent before it replies to a message. */
  context(scope: Scope, message = "", options: Options<T.ContextBody, "message"> = {}): Promise<T.Context> {
    return this.#read("/v1/context", { scope, message, ...options });
  }

  /** Recall as a conversation may do it: in all the memory that its context shows, and in nothing else. */
  lookUp(scope: Scope, query: string | string[], options: Options<T.LookUpBody, "query"> = {}): Promise<T.Hits> {
    return this.#read("/v1/look-up", { scope, query, ...options });
  }

  get(scope: Scope, id: string, options: ReadOptions = {}): Promise<Item> {
    return this.#get(`/v1/memories/${encodeURIComponent(id)}`, { scope, ...options });
  }

  /** What the scope holds, a page at a time. */
  list(scope: Scope, options: ListOptions = {}): Promise<T.ItemPage> {
    return this.#get("/v1/memories", { scope, ...options });
  }

  /** Everything the scope holds, page after page. */
  async *listAll(scope: Scope, options: ListOptions = {}): AsyncGenerator<Item, void, undefined> {
    let after = options.after ?? "";
    do {
      const page = await this.list(scope, { ...options, after });
      yield* page.items;
      after = page.next;
    } while (after);
  }

  /** All versions of a memory, oldest first. */
  async history(scope: Scope, id: string, options: ReadOptions = {}): Promise<T.Atom[]> {
    return (await this.#get<T.HistoryReply>(`/v1/memories/${encodeURIComponent(id)}/history`, { scope, ...options })).versions;
  }

  /** Close a memory and put a new one in its place; the old one stays readable. */
  update(scope: Scope, id: string, changes: Options<T.UpdateBody>): Promise<T.Receipt> {
    return this.#transport.json("PATCH", `/v1/memories/${encodeURIComponent(id)}`, { body: { scope, ...changes } });
  }

  /** Set until when memories hold, in place and without a new version; null means for ever. */
  async expire(scope: Scope, ids: string | string[], at: string | number | null): Promise<T.Receipt[]> {
    return (await this.#post<T.ExpireReply>("/v1/expire", { scope, ids, at })).receipts;
  }

  /** Take messages back that somebody edited, deleted or had answered anew; with `retracted` false restore them. */
  async retract(scope: Scope, ids: string | string[], retracted = true): Promise<T.Receipt[]> {
    return (await this.#post<T.RetractReply>("/v1/retract", { scope, ids, retracted })).receipts;
  }

  /** Mark a memory as one that no clean-up may take. */
  pin(scope: Scope, id: string, pinned = true): Promise<T.Receipt> {
    return this.#post(`/v1/memories/${encodeURIComponent(id)}/pin`, { scope, pinned });
  }

  /** Say by hand that a memory or message is worth keeping, is not, or is of another kind. It counts for like sentences too. */
  correct(scope: Scope, id: string, verdict: T.CorrectionsAddBody["verdict"], sentence = ""): Promise<T.Correction> {
    return this.#post("/v1/corrections", { scope, id, verdict, sentence });
  }

  async corrections(scope: Scope): Promise<T.Correction[]> {
    return (await this.#get<T.CorrectionsListReply>("/v1/corrections", { scope })).corrections;
  }

  /** Let a correction count no more. What it changed at once stays as it is. */
  async removeCorrection(scope: Scope, id: string): Promise<void> {
    await this.#post<T.Done>(`/v1/corrections/${encodeURIComponent(id)}/remove`, { scope });
  }

  /** Remove memories for good: ids, a person, or everything. Name exactly one of the three. */
  forget(scope: Scopes, what: Options<T.ForgetBody>): Promise<T.ForgetReport> {
    return this.#post("/v1/forget", { scope, ...what });
  }

  /** What was learned last, in all scopes or in the one with these keys. */
  recent(options: Record<string, unknown> & { limit?: number; after?: string; since?: string } & ReadOptions = {}): Promise<T.ItemPage> {
    return this.#get("/v1/recent", options);
  }

  async scopes(keys: Record<string, string> = {}): Promise<string[]> {
    return (await this.#get<T.ScopesReply>("/v1/scopes", keys)).scopes;
  }

  async streams(keys: Record<string, string> = {}): Promise<T.Stream[]> {
    return (await this.#get<T.StreamsListReply>("/v1/streams", keys)).streams;
  }

  configure(scope: Scope, settings: Partial<T.Settings>, preset = ""): Promise<T.Stream> {
    return this.#transport.json("PATCH", "/v1/streams", { body: { scope, settings, preset } });
  }

  /** Every revision of a stream's summary, oldest first. */
  async revisions(scope: Scope): Promise<T.Revision[]> {
    return (await this.#get<T.SummariesRevisionsReply>("/v1/revisions", { scope })).revisions;
  }

  /** Turn what was said in a conversation into memories now. */
  form(scope: Scope, force = true): Promise<T.FormReport> {
    return this.#post("/v1/form", { scope, force });
  }

  /** What stands around an entity. */
  neighbours(scope: Scope, entity = "", options: ReadOptions & { depth?: number; limit?: number } = {}): Promise<T.Neighbourhood> {
    return this.#get("/v1/graph", { scope, entity, ...options });
  }

  /** How many passages, entities and triples there are. */
  graphSize(scope: Scope, options: ReadOptions = {}): Promise<T.GraphSize> {
    return this.#get("/v1/graph/size", { scope, ...options });
  }

  status(): Promise<T.Status> {
    return this.#get("/v1/status", {});
  }

  /** Export scopes, or all that the key may see, as JSON Lines: one line at a time, as they come. */
  async *export(scopes?: Scopes, options: ReadOptions = {}): AsyncGenerator<string, void, undefined> {
    const { body } = await this.#transport.send("GET", "/v1/export", { query: { scope: scopes, ...options } });
    if (body) yield* readLines(body);
  }

  /** Import what `export` gave. Read twice it changes nothing. */
  async import(lines: Iterable<string> | AsyncIterable<string>): Promise<T.ImportReport> {
    let body = "";
    for await (const line of lines) body += line.endsWith("\n") ? line : `${line}\n`;
    return this.#transport.json("POST", "/v1/import", { body, headers: { "Content-Type": "application/jsonl" } });
  }

  /** What memory is learning now, for as long as you read. It connects again by itself and goes on where it was. */
  async *events(options: { after?: string; signal?: AbortSignal } = {}): AsyncGenerator<LearnedEvent, void, undefined> {
    const { signal } = options;
    for (let after = options.after ?? ""; !signal?.aborted; ) {
      const headers: Record<string, string> = { Accept: "text/event-stream", ...(after && { "Last-Event-ID": after }) };
      const request: RequestOptions = { headers, repeatable: true, ...(signal && { signal }) };
      try {
        const { body } = await this.#transport.send("GET", "/v1/events", request);
        if (!body) return;
        for await (const { id, event, data } of readEvents(body)) {
          after = id || after;
          if (event === "learned") yield { id, item: JSON.parse(data) as T.Atom };
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof EunoeError) throw error;
        // The connection broke: it is opened again.
      }
    }
  }

  /** Call any other path of the server. */
  request<R>(method: string, path: string, options: RequestOptions = {}): Promise<R> {
    return this.#transport.json<R>(method, path, options);
  }

  #get<R>(path: string, query: Record<string, unknown>): Promise<R> {
    return this.#transport.json<R>("GET", path, { query, repeatable: true });
  }

  #read<R>(path: string, body: unknown): Promise<R> {
    return this.#transport.json<R>("POST", path, { body, repeatable: true });
  }

  #post<R>(path: string, body: unknown, options: RequestOptions = {}): Promise<R> {
    return this.#transport.json<R>("POST", path, { body, ...options });
  }
}
