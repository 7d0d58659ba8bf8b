// node shots.mjs MODULES SITE OUT PAGE...: pictures of pages of the built site in headless
// Chromium, to look at. MODULES is a folder with
//   npm install --prefix MODULES playwright-core @sparticuz/chromium mathjax@4
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, site, out, ...pages] = process.argv.slice(2).map((a, k) => (k < 3 ? path.resolve(a) : a));
const resolve = createRequire(path.join(modules, "package.json")).resolve;
const load = (name) => import(pathToFileURL(resolve(name)));
const { default: build } = await load("@sparticuz/chromium");
const { chromium } = (await load("playwright-core")).default;
const browser = await chromium.launch({ executablePath: await build.executablePath(), args: build.args });
const page = await browser.newPage({ viewport: { width: 1300, height: 900 } });
page.on("pageerror", (error) => console.error(String(error)));
await page.route("https://cdn.jsdelivr.net/npm/**", (route) => {
  const name = new URL(route.request().url()).pathname.replace("/npm/", "").replace(/@[\d.]+\//, "/");
  const file = path.join(modules, "node_modules", name);
  return fs.existsSync(file) ? route.fulfill({ path: file }) : route.abort();
});
fs.mkdirSync(out, { recursive: true });
for (const name of pages) {
  await page.goto(pathToFileURL(path.join(site, name)).href);
  await page.evaluate(() => window.MathJax?.startup?.promise);
  await page.screenshot({ path: path.join(out, `${name.replaceAll("/", "_")}.png`), fullPage: true });
}
await browser.close();
