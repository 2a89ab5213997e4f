/** The table of helm/pesit-node/README.md, read off the chart's values. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './process.mjs';

/** Key, default, and what the comment `# -- …` above the key says. */
export function valuesMarkdown() {
  const rows = [];
  const path = [];
  let words;
  for (const line of readFileSync(join(root, 'helm/pesit-node/values.yaml'), 'utf8').split('\n')) {
    const comment = /^\s*# -- (.*)$/.exec(line);
    if (comment) {
      words = comment[1];
      continue;
    }
    const key = /^(\s*)([\w.]+):(?: (.*))?$/.exec(line);
    if (!key) continue;
    path.length = key[1].length / 2;
    path.push(key[2]);
    if (words === undefined) continue;
    rows.push(`| \`${path.join('.')}\` | ${key[3] ? `\`${key[3]}\`` : 'see `values.yaml`'} | ${words} |`);
    words = undefined;
  }
  return ['| Value | Default | Meaning |', '| --- | --- | --- |', ...rows].join('\n');
}
