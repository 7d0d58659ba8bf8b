// Python runs here, off the page's thread. NumPy comes from Pyodide's own server; without
// it rules are checked, and there is no code.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const say = (state) => postMessage({ state });
const py = await loadPyodide({ indexURL: "./pyodide/", packageBaseUrl: "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/" });
say("Python has started, the prover is coming…");
const unpack = async (name) =>
  py.unpackArchive(new Uint8Array(await (await fetch(`wheels/${name}`)).arrayBuffer()), "whl");
await Promise.all((await (await fetch("wheels.json")).json()).map(unpack));
py.runPython(await (await fetch("bridge.py")).text());
const numpy = py.loadPackage("numpy").catch(() => {});
postMessage({ ready: true });

let latest = 0;
onmessage = async ({ data: { id, text, targets } }) => {
  latest = id;
  const began = performance.now();
  const found = JSON.parse(py.globals.get("check")(text));
  postMessage({ id, found, state: `checked in ${Math.round(performance.now() - began)} ms` });
  await numpy;
  await new Promise((go) => setTimeout(go)); // a newer text is read first
  if (latest === id) postMessage({ id, code: targets.map((t) => py.globals.get("emit")(text, t)) });
};
