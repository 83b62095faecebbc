export { Eunoe } from "./client.js";
export type { Hit, Item, LearnedEvent, ListOptions, MemoryLike, MessageLike, Scope, Scopes } from "./client.js";
export { ConnectionError, EunoeError } from "./errors.js";
export type { ClientOptions, RequestOptions } from "./transport.js";
export type * from "./types.js";
