// An empty store: ways to put something in, and the sample.
import { get, post } from "../api.js";
import { exampleScope, isOwner, may } from "../caller.js";
import { button, h } from "../dom.js";
import { go } from "../router.js";
import { command, empty, tell } from "./notices.js";

export async function firstSteps() {
  if (!may("write")) return empty("This memory is empty", "Your key may not write. What others put in stands here.");
  return h(
    "div",
    { class: "empty first-steps" },
    h("h2", {}, "This memory is empty"),
    h("p", {}, "Put something in, then it stands here."),
    isOwner() ? await ownerSteps() : keySteps(),
    h("h3", {}, "Or look around first"),
    h(
      "p",
      {},
      "Two friends restore an old dinghy and talk it through with their assistant. It goes into scopes of its own (agent=pilot/user=sample).",
    ),
    h("div", { class: "actions" }, sampleButton()),
  );
}

async function ownerSteps() {
  const { path } = await get("/inspector/token-file");
  return [
    h("h3", {}, "From the command line"),
    command('eunoe remember user=me "I prefer window seats."'),
    h("h3", {}, "From your assistant"),
    command("eunoe mcp --install claude-code"),
    h("h3", {}, "From your program"),
    command(request(`$(cat '${path.replaceAll("'", "'\\''")}')`)),
  ];
}

const keySteps = () => [
  h("h3", {}, "From your program"),
  h("p", {}, "Put your key in the place of YOUR_KEY."),
  command(request("YOUR_KEY")),
];

function request(token) {
  const body = JSON.stringify({ scope: exampleScope(), items: ["I prefer window seats."] });
  return `curl ${location.origin}/v1/memories -H "Authorization: Bearer ${token}" -H "Content-Type: application/json" -d '${body}'`;
}

function sampleButton() {
  const own = button(
    "Load the sample",
    async () => {
      own.disabled = true;
      own.textContent = "Loading the sample…";
      try {
        await post("/inspector/sample");
        go("learned", { span: "all" });
      } catch (problem) {
        tell(problem);
        own.disabled = false;
        own.textContent = "Load the sample";
      }
    },
    { class: "primary" },
  );
  return own;
}
