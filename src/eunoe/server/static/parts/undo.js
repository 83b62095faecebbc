// Steps that can be taken back. What cannot be undone once it is done waits a moment before it is sent.
import { tell, toast } from "./notices.js";

const GRACE = 6000;
const done = []; // steps that have an inverse, the latest last
const waiting = new Set();

// Do something later, unless it is undone before. It is sent at once when the page is left.
export function later(text, send, takeBack) {
  const step = { send, takeBack, isOpen: true };
  step.undo = () => {
    step.close();
    takeBack();
  };
  step.close = () => {
    step.isOpen = false;
    clearTimeout(step.timer);
    step.dismiss();
    waiting.delete(step);
    forgetStep(step);
  };
  step.dismiss = toast(text, { action: () => step.isOpen && step.undo(), stay: GRACE });
  step.timer = setTimeout(() => finish(step), GRACE);
  waiting.add(step);
  done.push(step);
}

async function finish(step, options = {}) {
  if (!step.isOpen) return;
  step.close();
  try {
    await step.send(options);
  } catch (problem) {
    step.takeBack();
    tell(problem);
  }
}

// Note something that was done and how to undo it.
export function undoable(text, undo) {
  const step = {
    undo: async () => {
      forgetStep(step);
      dismiss();
      await undo();
    },
  };
  const dismiss = toast(text, { action: () => step.undo().catch(tell) });
  done.push(step);
}

const forgetStep = (step) => done.includes(step) && done.splice(done.indexOf(step), 1);

export function undoLast() {
  const step = done.at(-1);
  if (!step) return toast("There is nothing to undo.");
  return Promise.resolve(step.undo()).catch(tell);
}

// Send all that waits.
export const flush = (options) => Promise.all([...waiting].map((step) => finish(step, options)));

window.addEventListener("pagehide", () => flush({ keepalive: true }));
