// Written from the OpenAPI document of the server by `make faces`. Do not edit.

/** How often a memory was recalled, and when last. */
export interface Access {
  times: number;
  last: string | null;
}

export interface AdminAccessCountsBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Ids, as receipts and hits give them. */
  ids: string | string[];
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
}

/** Return how often memories were recalled, and when last. */
export interface AdminAccessCountsReply {
  counts: Record<string, Access>;
}

export interface AdminProcessColdSessionsBody {
  idle?: number;
  minimum?: number;
  /** At most so many. */
  limit?: number;
  concurrency?: number;
}

export interface AdminReembedBody {
  model?: string | null;
}

/** Make vectors with another model, or those still missing if none is named; return how many were made. */
export interface AdminReembedReply {
  count: number;
}

export interface AdminReindexBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
}

/** Drop the indexes of these scopes and build them anew from the records; return how many. */
export interface AdminReindexReply {
  count: number;
}

/** One thing remembered, with where it came from and when it holds. */
export interface Atom {
  text: string;
  kind: "fact" | "observation";
  id: string;
  label: string;
  files: string[];
  pages: string[];
  people: string[];
  /** Ids of the messages it came from. */
  source: string[];
  /** When it happened. */
  time: string | null;
  valid_from: string | null;
  valid_to: string | null;
  pinned: boolean;
  metadata: Record<string, unknown>;
  scope: string | null;
  recorded: string | null;
  retired: string | null;
  supersedes: string;
  superseded_by: string;
  /** Whether it waits to be looked at: until `review` keeps it, only `get`, `list` and `recent` show it. */
  in_review: boolean;
  /** Ids of the memories whose place it takes once it is kept. */
  replaces: string[];
}

export interface AtomHit {
  text: string;
  kind: "fact" | "observation";
  id: string;
  label: string;
  files: string[];
  pages: string[];
  people: string[];
  /** Ids of the messages it rests on: its own for a message. */
  source: string[];
  /** When it happened. */
  time: string | null;
  valid_from: string | null;
  valid_to: string | null;
  pinned: boolean;
  metadata: Record<string, unknown>;
  scope: string | null;
  recorded: string | null;
  retired: string | null;
  supersedes: string;
  superseded_by: string;
  /** Whether it waits to be looked at: until `review` keeps it, only `get`, `list` and `recent` show it. */
  in_review: boolean;
  /** Ids of the memories whose place it takes once it is kept. */
  replaces: string[];
  /** From 0 to 1. */
  score: number;
  /** What spoke for it, the most important first. */
  reasons: Reason[];
}

/** One change, or one that was refused. */
export interface AuditEntry {
  /** The verb, or the name of the route. */
  action: string;
  /** The id of the key with which it was asked for. */
  key: string;
  tenant: string;
  scopes: string[];
  /** How many items it changed. */
  count: number;
  outcome: "done" | "refused" | "failed";
  via: "http" | "mcp" | "inspector" | "oauth" | "cli";
  request_id: string;
  time: string;
  /** Counted within the tenant: it says nothing about others. */
  id: number;
}

/** A part of a longer list. */
export interface AuditPage {
  items: AuditEntry[];
  /** Pass it as `after` to read on; empty if there is no more. */
  next: string;
}

export interface BackupBody {
  /** A file name; made from the time if none is given. */
  name?: string;
}

/** A copy of a store that was written and read once more, and what it holds. */
export interface BackupReport {
  path: string;
  bytes: number;
  scopes: number;
  messages: number;
  facts: number;
  observations: number;
  /** Where the store is kept that a restored one took the place of. */
  kept: string;
}

export interface ByFilesBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  paths: string | string[];
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
  /** At most so many. */
  limit?: number | null;
  /** The `next` of the page before. */
  after?: string;
}

/** Return what is remembered about these files, or about files in these folders; latest first. */
export interface ByFilesReply {
  items: Atom[];
  /** Pass it as `after`; empty if there is no more. */
  next: string;
}

/** A part of the text: the same in both, only in the old one, only in the new one, or put in other words. */
export interface Change {
  kind: "same" | "removed" | "added" | "changed";
  /** The lines of the old revision. */
  old: string;
  /** The lines of the new revision. */
  new: string;
  /** Of changed lines: pairs of a kind ("same", "removed" or "added") and a text. */
  words: string[][];
}

/** What a check of the whole store found. */
export interface CheckReport {
  /** Rows that were read. */
  rows: number;
  damage: Damage[];
}

/** Two revisions, and the way from one to the other. */
export interface Comparison {
  /** Null for number 0: before the first. */
  old: Revision | null;
  new: Revision;
  changes: Change[];
}

/** Memory for one reply: first what always stands there, then what was recalled for this message. */
export interface Context {
  /** Ready to be put into a prompt; if it is empty, `notes` or `faults` say why. */
  text: string;
  /** Its length, never more than the budget. */
  tokens: number;
  /** The part that stays the same from turn to turn: `text` begins with it, so that prompt caches hit. As JSON, which cannot be left open, it is an object of its own, less `other_memories` and `retrieved_memories`. */
  static: string;
  /** The same as chat messages, if the format is `messages`. */
  messages: Record<string, unknown>[];
  /** What was recalled for this message and found room. */
  hits: Array<AtomHit | MessageHit>;
  /** What was looked up; empty if nothing was. */
  query: string;
  /** Parts that could not be had; the rest is there. */
  faults: string[];
  /** Hints for the caller: why the text is empty, or what an embedder or reranker could not do. */
  notes: string[];
}

export interface ContextBody {
  /** The conversation, such as `{"session": "s1", "user": "anna", "agent": "cook"}`. */
  scope: string | Record<string, string | number>;
  message?: string;
  /** Who is present beside the scope's user. With more than one user, or where neither the scope nor `users` names one, nobody's own memory is shown. */
  users?: string | string[];
  /** The most it may take; the most valuable first. */
  tokens?: number | null;
  /** The most that is recalled for the message. */
  limit?: number | null;
  /** "auto" looks up what the message calls for, "off" leaves that to the agent's own tool. */
  recall?: "auto" | "off";
  /** How what is looked up is ranked, as in `recall`; "thorough" is slower and finds more. */
  recipe?: "default" | "thorough" | "lexical" | "dense" | "rrf" | "associative" | "documents" | number;
  format?: "xml" | "markdown" | "json" | "messages";
  /** Name the messages each memory rests on. */
  sources?: boolean;
  /** The moment that counts as the present. */
  now?: string | number | null;
}

/** Sentences that are worth keeping, are not, or are of another kind. It counts for those that are like them. */
export interface Correction {
  id: string;
  verdict: "keep" | "drop" | "instruction" | "preference" | "fact" | "plan" | "decision" | "change";
  sentences: string[];
  /** Ids of the messages and memories that were corrected. It is forgotten with them. */
  source: string[];
  /** The stream that it counts in: a user's own, and with it all conversations of that user. */
  scope: string;
  recorded: string;
  /** Ids of the memories that came, were closed or were archived by it at once; empty where corrections are listed. */
  changed: string[];
}

export interface CorrectionsAddBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Of a memory or a message in this scope. */
  id: string;
  /** `keep`, `drop`, or a kind: `instruction`, `preference`, `fact`, `plan`, `decision` or `change`. */
  verdict: "keep" | "drop" | "instruction" | "preference" | "fact" | "plan" | "decision" | "change";
  /** The part of the message that is meant, word for word. Without it, what says something. */
  sentence?: string;
}

/** Return the corrections that are kept in a scope, latest first. Those of a user's messages are the user's. */
export interface CorrectionsListReply {
  corrections: Correction[];
}

export interface CorrectionsRemoveBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
}

/** A part of a store that is not as it was written. It repeats no words. */
export interface Damage {
  /** Empty if it is about a scope as a whole. */
  table: string;
  /** What tells the row apart, such as its id; empty if it is about a whole table. */
  row: string;
  /** Empty where it is not known, or belongs to no scope. */
  scope: string;
  problem: string;
}

/** One attempt to tell an address. */
export interface Delivery {
  number: number;
  time: string;
  items: number;
  /** Of the answer; 0 if there was none. */
  status: number;
  seconds: number;
  error: string;
}

/** A part of a longer list. */
export interface DeliveryPage {
  items: Delivery[];
  /** Pass it as `after` to read on; empty if there is no more. */
  next: string;
}

/** It is done; there is nothing to tell. */
export interface Done {
  done: boolean;
}

/** A name, and how much there is of it. */
export interface Entity {
  /** The form in which names are compared. */
  key: string;
  /** As it is written in one of its passages. */
  name: string;
  /** How many passages have it. */
  passages: number;
  /** How strongly it is tied to the name asked about, through others if need be; without one, to all others. */
  weight: number;
  /** Steps from the name asked about. */
  distance: number;
}

export interface ExpireBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Ids, as receipts and hits give them. */
  ids: string | string[];
  at: string | number | null;
}

/** Set until when atoms hold, in place and without a new version; None means for ever. */
export interface ExpireReply {
  receipts: Receipt[];
}

export interface FlushBody {
  /** Seconds; 30 if none are given. */
  timeout?: number | null;
}

/** Whether the background has nothing left to do. */
export interface Flushed {
  flushed: boolean;
}

export interface ForgetBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
  /** In a user's scope `@SCOPE#ID` names one of several with the same id. */
  ids?: string | string[];
  /** What they said and what is noted about them. */
  person?: string;
  /** With a person, what others said of them too. */
  mentions?: boolean;
  /** All that the scopes hold. */
  everything?: boolean;
  /** Leave no tombstones, so that the same text may be stored again. */
  may_return?: boolean;
  /** Search every table, file, index and cache for what should be gone. */
  verify?: boolean;
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
}

/** What was removed, and whether a search of everything still finds a trace of it. */
export interface ForgetReport {
  messages: string[];
  atoms: string[];
  vectors: number;
  /** Ids of what went, scope by scope; none where only a summary or settings went. */
  removed: Record<string, string[]>;
  /** Ids of what stays and still has the words, scope by scope: the messages that a memory came from and, if a search was asked for, whatever says the same. Forget them too, or somebody else's words stay. */
  held_by: Record<string, string[]>;
  /** Where the words may still be and nobody looked. */
  unsearched: string[];
  /** Ids that stay but mention the forgotten person by name, in the scopes that were given. */
  mentions: string[];
  /** The same, scope by scope. `forget` with `mentions=True` removes them. */
  mentions_by_scope: Record<string, string[]>;
  /** Scopes with a revision of the summary that mentions the person and was not made from what is gone. */
  summaries: string[];
  /** Whether nothing is left in the scopes and in what the memories came from: no trace, nothing that still has the words, nobody who mentions the person, and no place out of reach. None if no search was asked for. */
  verified: boolean | null;
  /** Places in the store where the words, or what was made of them, were still found. */
  traces: string[];
  /** Revisions of summaries that had absorbed what was forgotten, and went with it. */
  revisions: number;
  /** Scopes whose summary was written anew at once. Where a language model writes it, it follows in the background. */
  rebuilt: string[];
  /** Which corrections went with what they correct. Where nothing was removed: near scopes that hold something. */
  notes: string[];
}

export interface FormBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Now, whether or not enough waits. */
  force?: boolean;
}

/** What forming did. */
export interface FormReport {
  /** Messages that were turned into memories. */
  messages: number;
  /** Ids of new atoms, in all streams. */
  stored: string[];
  /** Those of them that wait to be looked at. */
  in_review: number;
  /** Memories that were known already; they now rest on the new messages too. */
  merged: number;
  /** Older memories closed by new ones. */
  superseded: number;
  /** Proposals that were not kept: forgotten before, without a message that bears them out, or for no stream here. */
  refused: number;
  /** Streams with a new summary. */
  consolidated: string[];
  /** Faults. What they hit is still due, or was formed without the LLM if they say so. */
  failed: string[];
}

export interface GetManyBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Ids, as receipts and hits give them. */
  ids: string | string[];
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
}

/** Return those of several messages and atoms that are there, in the order of their ids; closed ones too. */
export interface GetManyReply {
  items: Array<Message | Atom>;
}

export interface GraphExtractBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** At most so many. */
  limit?: number | null;
  ask?: boolean;
}

/** What extracting entities and triples with a language model did. */
export interface GraphReport {
  /** Passages that were read. */
  passages: number;
  /** Of these, passages about which the LLM was not asked: the same words had been read, or metadata told. */
  known: number;
  entities: number;
  triples: number;
  /** Passages that are still to be read. */
  due: number;
  /** Faults. What they hit is still due. */
  failed: string[];
}

/** How much there is in the graph of one scope. */
export interface GraphSize {
  passages: number;
  entities: number;
  /** Pairs of a passage and an entity in it. */
  mentions: number;
  /** What language models, or metadata, gave; each once, however many passages say it. */
  triples: number;
}

/** Return all versions of an atom, oldest first. */
export interface HistoryReply {
  versions: Atom[];
}

/** What was found, best first, and hints such as a near scope that holds something. */
export interface Hits {
  hits: Array<AtomHit | MessageHit>;
  notes: string[];
}

export interface Identity {
  /** HMAC-SHA256 of the nonce with the owner's token, in hex. */
  proof: string;
}

/** What an import brought in. */
export interface ImportReport {
  stored: number;
  duplicates: number;
  /** Lines refused because they had been forgotten here. */
  forgotten: number;
  tombstones: number;
  /** Memories that were still open here and had been superseded by the time of the export. */
  closed: number;
  /** Lines refused because their id stands for other words here, which stay as they are. */
  conflicts: number;
}

/** A part of a longer list. */
export interface ItemPage {
  items: Array<Message | Atom>;
  /** Pass it as `after` to read on; empty if there is no more. */
  next: string;
  notes: string[];
}

/** One piece of work behind the replies. */
export interface Job {
  id: string;
  kind: string;
  tenant: string;
  /** Empty if it is about the whole store. */
  scope: string;
  state: "queued" | "running" | "succeeded" | "dead" | "cancelled";
  attempts: number;
  /** What the last attempt said. It repeats no memories. */
  error: string;
  created: string;
  /** Not to be taken before. */
  due: string;
  done: number;
  total: number | null;
  started: string | null;
  finished: string | null;
  heartbeat: string | null;
  options: Record<string, unknown>;
  result: Record<string, unknown>;
}

export interface JobBody {
  /** The one scope that is named, where a user's means everything within. */
  exact?: boolean;
  kind: "form" | "consolidate" | "retention" | "export" | "cold_sessions" | "embed";
  scope?: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
  force?: boolean | null;
  /** Another model; without one only missing vectors are made. */
  model?: string | null;
}

/** A part of a longer list. */
export interface JobPage {
  items: Job[];
  /** Pass it as `after` to read on; empty if there is no more. */
  next: string;
}

/** What a key is bound to. The secret itself is not kept. */
export interface Key {
  id: string;
  name: string;
  /** Empty for whoever has the whole store. */
  tenant: string;
  /** Within the tenant; empty means all of it. */
  scopes: string[];
  rights: Array<"read" | "write" | "forget" | "admin">;
  created: string | null;
  expires: string | null;
  revoked: string | null;
  /** When it was last used, to the minute. */
  used: string | null;
}

export interface KeyBody {
  name: string;
  /** Else the tenant of the key that asks. */
  tenant?: string | null;
  scopes?: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
  rights?: Array<"read" | "write" | "forget" | "admin">;
  /** A time, or from now on: 30d, 12h. Empty for never. */
  expires?: string;
}

/** All there are. */
export interface KeyList {
  items: Key[];
}

/** Two names, by their keys, that passages share. Each passage counts 1, one that is about either of them more. */
export interface Link {
  a: string;
  b: string;
  weight: number;
}

/** Whether an LLM answers, and what one short answer took. */
export interface LlmReport {
  model: string;
  /** What is wrong; empty if it answers. */
  problem: string;
  seconds: number;
  input_tokens: number;
  output_tokens: number;
  cost: number;
}

export interface LookUpBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** One question or several; a memory counts by the one that it answers best. */
  query: string | string[];
  /** Who is present, as in `context`. */
  users?: string | string[];
  /** Some of "session", "user" and "collective"; all of them if none is named. */
  memory_types?: "session" | "user" | "collective" | Array<"session" | "user" | "collective">;
  /** At most so many. */
  limit?: number;
  /** As in `recall`; one that reranks, such as "thorough", does so once for each question. */
  recipe?: "default" | "thorough" | "lexical" | "dense" | "rrf" | "associative" | "documents" | number;
  /** What the context of this scope shows, where a user's would mean everything within. */
  exact?: boolean;
}

/** A passage that has the name asked about. */
export interface Mention {
  id: string;
  kind: string;
  text: string;
  /** Whether the name is what the passage is about. */
  about: boolean;
  /** The keys of the names in it, as far as they are shown. */
  keys: string[];
}

/** One thing said. The store fills in `scope`, `position`, `recorded` and `retired`. */
export interface Message {
  text: string;
  /** Which side spoke. Where none is given, a speaker called by one, such as "Assistant", has it; others are users. */
  role: string;
  speaker: string;
  /** When it was said. Without a zone it is taken as UTC, as everywhere. */
  time: string | null;
  id: string;
  session: string;
  /** What an attached picture shows. It is searched, but it is not part of the words. */
  caption: string;
  metadata: Record<string, unknown>;
  scope: string | null;
  position: number;
  recorded: string | null;
  /** When it was taken back; see `retract`. */
  retired: string | null;
  kind: "message";
}

export interface MessageHit {
  text: string;
  /** Which side spoke. Where none is given, a speaker called by one, such as "Assistant", has it; others are users. */
  role: string;
  speaker: string;
  /** When it was said. Without a zone it is taken as UTC, as everywhere. */
  time: string | null;
  id: string;
  session: string;
  /** What an attached picture shows. It is searched, but it is not part of the words. */
  caption: string;
  metadata: Record<string, unknown>;
  scope: string | null;
  position: number;
  recorded: string | null;
  /** When it was taken back; see `retract`. */
  retired: string | null;
  kind: "message";
  /** From 0 to 1. */
  score: number;
  /** What spoke for it, the most important first. */
  reasons: Reason[];
  /** Ids of the messages it rests on: its own for a message. */
  source: string[];
}

/** One call of an LLM, without what was asked and what was answered. */
export interface ModelCall {
  operation: string;
  model: string;
  /** When it was asked. */
  time: string;
  /** For whose memory it was asked, where that is known. */
  scope: string | null;
  seconds: number;
  input_tokens: number;
  output_tokens: number;
  /** 0 where no price is known. */
  cost: number;
  /** The kind of failure, with the status that a server gave; empty if it answered. */
  error: string;
}

/** A part of a longer list. */
export interface ModelCallPage {
  items: ModelCall[];
  /** Pass it as `after` to read on; empty if there is no more. */
  next: string;
  notes: string[];
}

/** A part of the graph of one scope. */
export interface Neighbourhood {
  /** The key of the name asked about; empty if none was. */
  entity: string;
  /** The nearest first, the strongest tie first; the one asked about before all. */
  entities: Entity[];
  links: Link[];
  passages: Mention[];
  /** Between the entities; those that most passages say first. */
  relations: Relation[];
}

/** A key, and its text, which is shown this once. */
export interface NewKey {
  key: Key;
  /** What to send as `Authorization: Bearer`. */
  token: string;
}

/** A webhook and its secret. */
export interface NewWebhook {
  id: string;
  /** The id of the key that made it: it is told what that key may read. */
  key: string;
  tenant: string;
  url: string;
  /** Whether the words are sent, or only which memories there are. */
  with_text: boolean;
  created: string;
  /** Why nothing is sent any more; empty if it works. */
  problem: string;
  /** What its requests are signed with; shown this once. */
  secret: string;
}

export interface ObserveBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  messages: string | {
    content: string | unknown[];
    role?: string;
    speaker?: string;
    id?: string;
    session?: string;
    time?: string | number | null;
    caption?: string;
    metadata?: Record<string, unknown>;
  } | Array<string | {
    content: string | unknown[];
    role?: string;
    speaker?: string;
    id?: string;
    session?: string;
    time?: string | number | null;
    caption?: string;
    metadata?: Record<string, unknown>;
  }>;
}

/** Append messages to the log, word for word; all of them or, on an error, none. */
export interface ObserveReply {
  receipts: Receipt[];
}

/** A message that nothing new would be learned from, and why. */
export interface PassedOver {
  id: string;
  /** The name of who said it, or the role. */
  speaker: string;
  text: string;
  reason: string;
}

export interface PinBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Whether no clean-up may take it. */
  pinned?: boolean;
}

/** The atoms that would be learned from messages, and the messages that were passed over. */
export interface Preview {
  items: Atom[];
  next: string;
  notes: string[];
  /** Ids of those atoms that are less than sure; with `review` set to `uncertain` they would wait. */
  doubtful: string[];
  passed_over: PassedOver[];
  /** By id of an atom: the sentence whose correction by hand decided about it. */
  corrected: Record<string, string>;
}

export interface PreviewBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Without any, those of the conversation that are still to be formed. */
  messages?: string | {
    content: string | unknown[];
    role?: string;
    speaker?: string;
    id?: string;
    session?: string;
    time?: string | number | null;
    caption?: string;
    metadata?: Record<string, unknown>;
  } | Array<string | {
    content: string | unknown[];
    role?: string;
    speaker?: string;
    id?: string;
    session?: string;
    time?: string | number | null;
    caption?: string;
    metadata?: Record<string, unknown>;
  }> | null;
}

/** What is wrong, and what to do (RFC 9457). */
export interface Problem {
  type: string;
  title: string;
  status: number;
  /** What a program branches on. */
  code: string;
  /** What is wrong, in words. */
  detail: string;
  /** What to do about it. */
  hint: string;
  /** By which the server's log knows the request. */
  request_id?: string;
}

/** One signal that spoke for a hit, and its share of the score. */
export interface Reason {
  name: string;
  share: number;
  detail: string;
}

export interface RecallBody {
  /** One scope or a list of them; nothing outside them is read. One that names a user means everything within: their sessions, and what agents keep about them. Any other means itself alone, unless `/*` follows, as in `agent=cook/*`. */
  scope: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
  /** The question. */
  query: string;
  /** At most so many hits; 10 if neither this nor `tokens` is given. */
  limit?: number | null;
  /** At most so many tokens of text, the best hits first. */
  tokens?: number | null;
  /** Only these kinds. */
  kinds?: "message" | "fact" | "observation" | Array<"message" | "fact" | "observation">;
  /** Only what has one of these labels. */
  labels?: string | string[];
  /** What was said or happened at that time or later. */
  since?: string | number | null;
  /** What was said or happened before that time. */
  until?: string | number | null;
  /** Files, or folders, that it is about. */
  files?: string | string[];
  /** People whom it is about. */
  people?: string | string[];
  /** Only what was said in these sessions. */
  sessions?: string | string[];
  /** Only what these people said. */
  speakers?: string | string[];
  /** Conditions on metadata, such as `{"team": "red", "size": {"gte": 3}}`; `AND`, `OR` and `NOT` join others. They apply before ranking. */
  where?: Record<string, unknown> | null;
  /** What was true then. */
  as_of?: string | number | null;
  /** What the store knew then. */
  known_at?: string | number | null;
  /** The moment the question is asked, for words such as "yesterday". */
  now?: string | number | null;
  /** How signals are weighed; see docs/recall.md. A number is `thorough` within so many milliseconds. */
  recipe?: "default" | "thorough" | "lexical" | "dense" | "rrf" | "associative" | "documents" | number;
  vector?: number[] | null;
  /** Also what no longer holds, because its `valid_to` is over. */
  expired?: boolean;
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
}

/** What a write did with one item. */
export interface Receipt {
  outcome: "stored" | "duplicate" | "superseded" | "forgotten" | "conflict" | "ignored";
  id: string;
  /** False while its vector is still to be made: behind the reply, or once an embedder that failed works again. */
  embedded: boolean;
  closed: string;
}

/** What passages say of two names, by their keys: a language model, or metadata, gave it. */
export interface Relation {
  subject: string;
  relation: string;
  object: string;
  /** How many passages say it. */
  passages: number;
}

export interface RememberManyBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  items: Array<string | {
    text: string;
    /** An id of your own. Atoms with an id are told apart by it, the others by what they say. */
    id?: string;
    /** Its vector, if you have made it with the store's model already; or a matrix, whose rows all lead to it, such as one for each of its fields. */
    vector?: number[] | number[][] | null;
    /** A fact is kept and searched; an observation waits to be consolidated. */
    kind?: "fact" | "observation";
    /** Such as `preference`. */
    label?: string;
    /** Files, or folders, that it is about. */
    files?: string | string[];
    /** Pages that it is about. */
    pages?: string | string[];
    /** People whom it is about. */
    people?: string | string[];
    /** Ids of the messages it rests on. If one of them is forgotten, the atom is forgotten too. One in another scope is written `@SCOPE#ID`, and is taken only if `source_scopes` names that scope. */
    source?: string | string[];
    /** When it happened. */
    time?: string | number | null;
    /** Since when it is true. */
    valid_from?: string | number | null;
    /** Until when it is true. */
    valid_to?: string | number | null;
    /** Whether no clean-up may take it. */
    pinned?: boolean;
    /** Whatever else is known of it. */
    metadata?: Record<string, unknown> | null;
  }>;
  /** Other scopes that its sources are in. */
  source_scopes?: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
  /** Keep it even if it was forgotten before. */
  again?: boolean;
  /** An id that is there already names the new version from now on. */
  replace?: boolean;
}

/** Keep many at once, each a text or a dict of what `remember` takes; all of them or, on an error, none. */
export interface RememberManyReply {
  receipts: Receipt[];
}

/** Which memories a clean-up archived, or would archive, and why. */
export interface RetentionReport {
  /** Id and reason. */
  archived: string[][];
  kept: number;
  dry_run: boolean;
}

export interface RetractBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Ids, as receipts and hits give them. */
  ids: string | string[];
  retracted?: boolean;
}

/** Take messages back that somebody edited, deleted or had answered anew; with `retracted=False` restore them. */
export interface RetractReply {
  receipts: Receipt[];
}

export interface ReviewBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Ids, as receipts and hits give them. */
  ids: string | string[];
  keep?: boolean;
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
}

/** Keep new memories that wait for review: from then on they are recalled, and close what they were to close. */
export interface ReviewReply {
  receipts: Receipt[];
}

/** One version of a summary, and what it absorbed. */
export interface Revision {
  number: number;
  text: string;
  /** The revision it was written from; 0 if there was none. */
  parent: number;
  /** Ids of the observations it absorbed beyond those of its parent. */
  absorbed: string[];
  /** The LLM that wrote it, `extractive`, or whoever wrote it by hand. */
  author: string;
  recorded: string | null;
  current: boolean;
}

export interface RotationBody {
  /** How long the old secret still counts. */
  overlap?: string;
}

/** Return all scopes that hold something, or those of them that have these keys with these values. */
export interface ScopesReply {
  scopes: string[];
  /** Pass it as `after`; empty if there is no more. */
  next: string;
}

/** The settings of one stream. A limit of 0 is none. */
export interface Settings {
  /** The keys among agent, user, session, thread and shard (or of your own) that say whose memory it is. Other keys of a conversation, such as its tenant, always belong to it too. A conversation without the last key named here feeds the streams that were set up by hand, such as an agent's shards. */
  owner: string[];
  is_active: boolean;
  /** What to look for, in plain words. Braces and other signs mean nothing. */
  extraction_prompt: string;
  extraction_fields: Array<"fact" | "observation">;
  observation_extraction_min: number;
  observation_extraction_max: number;
  observation_max_words: number;
  fact_extraction_min: number;
  fact_extraction_max: number;
  fact_max_words: number;
  /** What the summary is for. Without one, observations are never consolidated. */
  consolidation_prompt: string;
  /** Observations that must wait before they are consolidated. */
  consolidation_trigger: number;
  consolidated_max_words: number;
  /** Latest facts that stand in every context. */
  fact_buffer_max: number;
  /** Latest observations, not yet consolidated, that stand in every context. */
  observation_buffer_max: number;
  /** Whether context recalls from this stream by what a message asks. */
  fact_rag_enabled: boolean;
  extraction_model: string;
  consolidation_model: string;
  /** Which new memories wait until somebody has looked at them: none (`off`), those that are doubtful (`uncertain`), or `all`. */
  review: string;
  /** A conversation is due after so many messages, */
  formation_messages: number;
  /** or after so many tokens, weighted by who spoke, */
  formation_tokens: number;
  /** or after so many seconds without a new message, */
  formation_idle_seconds: number;
  /** but never before so many messages. */
  formation_minimum: number;
  user_weight: number;
  tool_weight: number;
  agent_weight: number;
  other_weight: number;
  /** Longer talk is formed in pieces of at most this size. */
  chunk_tokens: number;
  /** Atoms to keep; beyond it the least valuable are archived. */
  keep_best: number;
  /** Atoms older than this are archived. */
  max_age_days: number;
  /** Atoms not recalled for so long are archived. */
  max_idle_days: number;
}

/** How the store stands. */
export interface Status {
  target: string;
  schema: number;
  scopes: number;
  messages: number;
  facts: number;
  observations: number;
  retired: number;
  tombstones: number;
  embedder: string;
  /** Items without any vector, which is still to be made. */
  unembedded: number;
  bytes: number;
  /** Languages that the embedder reads well; empty where nobody knows. */
  embedder_languages: string[];
  /** How many of the latest 100 memories are in each language, most first; `unclear` where their words do not tell. */
  languages: Record<string, number>;
  cached_streams: number;
  cached_bytes: number;
  /** Huge texts of which only the beginning can be searched so far; the rest follows behind the reply. */
  unindexed: number;
  embedder_error: string;
  /** Why the last recall that asked for the reranker did without it. */
  reranker_error: string;
  /** Vectors kept, by model. */
  vectors: Record<string, number>;
  /** The models that form and consolidate, if any. */
  llm: string;
  /** Messages that were not yet turned into memories. */
  due_messages: number;
  /** Chunks of conversations that wait or are under way. */
  jobs: number;
  /** Jobs and summaries whose last attempt failed; they are tried again. */
  failing: number;
  /** What the last of these said. */
  error: string;
  revisions: number;
  /** Atoms that wait to be looked at; `facts` and `observations` leave them out. */
  in_review: number;
  /** What language models have taken so far. */
  usage: Usage[];
  /** Faults of this process that cost a context a part, by kind. */
  faults: Record<string, number>;
}

/** The memory of one scope, as it stands. */
export interface Stream {
  scope: string;
  preset: string;
  settings: Settings;
  /** Raised by every write. */
  version: number;
  /** The number of the current summary; 0 if there is none. */
  revision: number;
  summary: string;
  facts: number;
  /** Those that no summary has absorbed yet. */
  observations: number;
  /** Atoms that wait to be looked at; `facts` and `observations` leave them out. */
  in_review: number;
  /** Ids of the observations that no summary has absorbed, the 200 oldest: as many as one summary takes in. */
  unabsorbed: string[];
  /** When its last memory was recorded or its summary was written, whichever is later; None before the first. */
  updated: string | null;
}

export interface StreamsApplyRetentionBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  max_age_days?: number | null;
  max_idle_days?: number | null;
  keep_best?: number | null;
  /** Only say what would be done. */
  dry_run?: boolean;
  /** The one scope that is named, where a user's would mean everything within. */
  exact?: boolean;
}

export interface StreamsConfigureBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  preset?: string;
  settings?: Record<string, unknown>;
}

/** Return the streams of all scopes, or of those that have these keys: settings, summary, what waits. */
export interface StreamsListReply {
  streams: Stream[];
  /** Pass it as `after`; empty if there is no more. */
  next: string;
}

/** Return the kinds of streams there are, and the settings each starts with. */
export interface StreamsPresetsReply {
  presets: Record<string, Settings>;
}

export interface StreamsSetIncognitoBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  on?: boolean;
}

export interface StreamsSetPresetBody {
  like?: string;
  settings?: Record<string, unknown>;
}

export interface StreamsUnarchiveBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
}

export interface SummariesConsolidateBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  /** Now, whether or not enough waits. */
  force?: boolean;
}

/** Write a stream's waiting observations into its summary now; without `force` only if enough wait. */
export interface SummariesConsolidateReply {
  revision: Revision | null;
}

export interface SummariesRestoreBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
}

/** Return every revision of a stream's summary, oldest first. */
export interface SummariesRevisionsReply {
  revisions: Revision[];
  /** Pass it as `after`; empty if there is no more. */
  next: string;
}

export interface SummariesWriteBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  text: string;
  author?: string;
  /** Write only if this is still the current revision; 0 if there must be none. */
  parent?: number | null;
  /** Ids of open observations and facts that it says. If one is forgotten, this revision goes too; observations wait no more to be consolidated. */
  absorbed?: string | string[];
  /** The revision it was written from, if that is not the current one; 0 for none. What the revisions after it had absorbed waits again. */
  base?: number | null;
}

export interface UpdateBody {
  /** Whose memory is meant. */
  scope: string | Record<string, string | number>;
  text?: string | null;
  /** Other scopes that its sources are in. */
  source_scopes?: string | Record<string, string | number> | Array<string | Record<string, string | number>>;
  vector?: number[] | number[][] | null;
  /** A fact is kept and searched; an observation waits to be consolidated. */
  kind?: "fact" | "observation";
  /** Such as `preference`. */
  label?: string;
  /** Files, or folders, that it is about. */
  files?: string | string[];
  /** Pages that it is about. */
  pages?: string | string[];
  /** People whom it is about. */
  people?: string | string[];
  /** Ids of the messages it rests on. */
  source?: string | string[];
  /** When it happened. */
  time?: string | number | null;
  /** Since when it is true. */
  valid_from?: string | number | null;
  /** Until when it is true. */
  valid_to?: string | number | null;
  /** Whether no clean-up may take it. */
  pinned?: boolean;
  /** Whatever else is known of it. */
  metadata?: Record<string, unknown> | null;
}

/** What calls of one LLM for one operation have taken together. */
export interface Usage {
  operation: string;
  model: string;
  calls: number;
  failures: number;
  input_tokens: number;
  output_tokens: number;
  seconds: number;
  /** 0 where no price is known. */
  cost: number;
}

/** An address, and how far it has been told. */
export interface Webhook {
  id: string;
  /** The id of the key that made it: it is told what that key may read. */
  key: string;
  tenant: string;
  url: string;
  /** Whether the words are sent, or only which memories there are. */
  with_text: boolean;
  created: string;
  /** Why nothing is sent any more; empty if it works. */
  problem: string;
}

export interface WebhookBody {
  url: string;
  /** Send the words too, not only which memories there are. */
  with_text?: boolean;
}

/** All there are. */
export interface WebhookList {
  items: Webhook[];
}
