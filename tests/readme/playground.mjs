// node playground.mjs PLAYGROUND ROOT TEXT...: what the page's bridge says of each text, as
// a JSON list. gradspec is the source below ROOT; the other wheels are the page's own.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, root, ...texts] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide", "pyodide.mjs")));
const py = await loadPyodide();
for (const name of JSON.parse(fs.readFileSync(path.join(folder, "wheels.json"), "utf8")))
  if (!name.startsWith("gradspec"))
    py.unpackArchive(new Uint8Array(fs.readFileSync(path.join(folder, "wheels", name))), "whl");
py.FS.mkdir("/source");
py.FS.mount(py.FS.filesystems.NODEFS, { root }, "/source");
py.runPython("import sys; sys.path.insert(0, '/source'); sys.dont_write_bytecode = True");
py.runPython(fs.readFileSync(path.join(root, "docs/site/playground/bridge.py"), "utf8"));
const answers = texts.map((text) => ({
  ...JSON.parse(py.globals.get("check")(text)),
  code: py.globals.get("emit")(text, "torch"),
}));
fs.writeSync(1, JSON.stringify(answers));
