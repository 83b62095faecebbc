import type { Problem } from "./types.js";

/** What a server refused or could not do. `code` is for programs, `message` and `hint` for people. */
export class EunoeError extends Error {
  override readonly name: string = "EunoeError";

  constructor(
    message: string,
    /** Such as `not_found`, `input`, `scope`, `access` or `conflict`. */
    readonly code: string,
    /** What to do about it. */
    readonly hint = "",
    /** The HTTP status; 0 if there was no answer. */
    readonly status = 0,
    /** By which the server's log knows the request. */
    readonly requestId = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** There was no answer, or none that a Eunoe server gives. Whether a write happened is not known. */
export class ConnectionError extends EunoeError {
  override readonly name = "ConnectionError";

  constructor(message: string, cause?: unknown) {
    super(message, "connection", "Start a server with `eunoe serve`, or check the address.", 0, "", { cause });
  }
}

/** The error that an answer tells of. */
export async function errorOf(response: Response): Promise<EunoeError> {
  const text = await response.text().catch(() => "");
  let problem: Partial<Problem> = {};
  try {
    problem = (JSON.parse(text) as Partial<Problem> | null) ?? {};
  } catch {
    // It is no Eunoe server, or something before it answers.
  }
  if (typeof problem.code !== "string") {
    return new EunoeError(`the server answers ${response.status}`, "unexpected", "Check the address.", response.status);
  }
  const detail = problem.detail ?? response.statusText;
  return new EunoeError(detail, problem.code, problem.hint, response.status, problem.request_id);
}
