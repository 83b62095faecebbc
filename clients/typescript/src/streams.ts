/** The lines of a body, as they come. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (done ? decoder.decode() : decoder.decode(value, { stream: true }))).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
      if (done) break;
    }
    if (rest) yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export interface ServerSentEvent {
  id: string;
  event: string;
  data: string;
}

/** The events of a body of type text/event-stream. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent, void, undefined> {
  let event: ServerSentEvent = { id: "", event: "message", data: "" };
  for await (const line of readLines(body)) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*?)\r?$/.exec(line) ?? [];
    if (name === "data") event.data += (event.data && "\n") + value;
    else if (name === "event" || name === "id") event[name] = value;
    else if (name === "" && value === "") {
      if (event.data) yield event;
      event = { id: event.id, event: "message", data: "" };
    }
  }
}
