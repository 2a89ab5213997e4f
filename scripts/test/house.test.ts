/** What holds for the repository as a whole. */
import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean);
const texts = tracked.filter((path) => /\.(?:ts|mjs|js|json|md|ya?ml|sh|tpl|html|css)$|^\.|Dockerfile/.test(path));

interface Manifest {
  readonly scripts?: Readonly<Record<string, string>>;
  readonly workspaces?: readonly string[];
}
interface LockFile {
  readonly packages: Readonly<Record<string, { readonly resolved?: string; readonly version?: string }>>;
}
const { scripts = {} } = JSON.parse(read('package.json')) as Manifest;

test('the README names the two commands', () => {
  const readme = read('README.md');
  expect(readme).toContain('npm start');
  expect(readme).toContain('npm test');
});

test('every npm command in the documentation exists', () => {
  const builtIn = ['ci', 'install', 'test', 'start'];
  const missing = tracked
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...read(path).matchAll(/\bnpm (?:run ([\w:-]+)|(test|start)\b)/g)]
        .map(([, script, short]) => script ?? short!)
        .filter((name) => scripts[name] === undefined && !(builtIn.includes(name) && name in scripts))
        .map((name) => `${path}: npm run ${name}`),
    );
  expect(missing).toEqual([]);
});

test('every file that a command of package.json runs exists', () => {
  const files = Object.values(scripts).flatMap((command) =>
    [...command.matchAll(/scripts\/[\w./-]+/g)].map(([path]) => path),
  );
  expect(files.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

/** A path as documents write it, with a star or `<resource>` for a part of it, as an expression over tracked paths. */
const asExpression = (path: string): string =>
  path
    .replace(/[.+$()[\]{}|^\\]/g, String.raw`\$&`)
    .replaceAll('*', '[^/]*')
    .replace(/<\w+>/g, '[^/]+');

test('every file that the documentation names exists', () => {
  const isThere = (path: string, from = '^'): boolean => {
    const wanted = new RegExp(`${from}${asExpression(path)}${path.endsWith('/') ? '' : '(?:$|/)'}`);
    return tracked.some((file) => wanted.test(file));
  };
  const missing = tracked
    .filter((path) => path.endsWith('.md'))
    .flatMap((document) =>
      [...read(document).matchAll(/`([\w./*<>-]+)`/g)]
        .map(([, path]) => path!)
        .filter((path) => !path.includes('/dist/'))
        .filter((path) =>
          /^(?:packages|apps|bench|torture|scripts|deploy|helm|docs|\.ci)\//.test(path)
            ? !isThere(path)
            : document === 'docs/architecture.md' && /^[\w*-]+\.(?:ts|mjs)$/.test(path) && !isThere(path, '(?:^|/)'),
        )
        .map((path) => `${document}: ${path}`),
    );
  expect(missing).toEqual([]);
});

/** Requirements of OWASP ASVS 5.0.0 of levels 1 and 2, by section: how many. They are numbered from 1, those of level 3 last. */
const ASVS = `1.1:2 1.2:9 1.3:11 1.4:3 1.5:2 2.1:3 2.2:3 2.3:4 2.4:1 3.2:2 3.3:4 3.4:6 3.5:5 3.7:2 4.1:3 4.2:1 4.3:2 4.4:4 5.1:1 5.2:3
  5.3:2 5.4:3 6.1:3 6.2:12 6.3:4 6.4:4 6.5:5 6.6:3 6.8:4 7.1:3 7.2:4 7.3:2 7.4:5 7.5:2 7.6:2 8.1:2 8.2:3 8.3:1 8.4:1 9.1:3 9.2:4 10.1:2
  10.2:2 10.3:4 10.4:11 10.5:5 10.6:2 10.7:3 11.1:2 11.2:3 11.3:3 11.4:4 11.5:1 11.6:1 12.1:3 12.2:2 12.3:4 13.1:1 13.2:5 13.3:2 13.4:5
  14.1:2 14.2:4 14.3:3 15.1:3 15.2:3 15.3:7 16.1:1 16.2:5 16.3:4 16.4:3 16.5:3 17.1:1 17.2:4 17.3:2`;

/** `4.3.1–4.3.3` as its numbers. */
const numbersOf = (text: string): readonly string[] => {
  const [first = '', last = first] = text.split('–');
  const at = (number: string): number => Number(/\d+$/.exec(number)?.[0]);
  const section = first.replace(/\.\d+$/, '');
  return Array.from({ length: at(last) - at(first) + 1 }, (_, index) => `${section}.${at(first) + index}`);
};

test('docs/security-asvs.md has each requirement of levels 1 and 2 once, with a state, and a test or the word that there is none', () => {
  const required = ASVS.split(/\s+/).flatMap((text) => {
    const [section, count] = text.split(':');
    return numbersOf(`${section}.1–${section}.${count}`);
  });
  expect(required).toHaveLength(253);
  const rows = read('docs/security-asvs.md')
    .split('\n')
    .filter((line) => /^\| \d/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  expect(rows.flatMap(([, numbers = '']) => numbers.split(', ').flatMap(numbersOf))).toEqual(required);
  const files = new Set(tracked);
  const wrong = rows.filter(([, , state = '', says = '', test = '']) => {
    const named = [...test.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
    const areTests = named.every((path) => {
      const paths = path.startsWith('apps/*/') ? ['server', 'client'].map((app) => path.replace('*', app)) : [path];
      return paths.every((one) => one.endsWith('.test.ts') && files.has(one));
    });
    const isSaid = {
      met: named.length > 0 || test === 'no test',
      'in part': named.length > 0 || test === 'no test',
      'not met': named.length > 0 || test === '–',
      'does not apply': test === '–',
    }[state];
    return says === '' || !areTests || isSaid !== true;
  });
  expect(wrong).toEqual([]);
});

test('no tracked file names a path of one machine or a package registry', () => {
  // In pieces, so that this file does not name them either.
  const forbidden = new RegExp(
    [
      String.raw`(?<![\w./-])/${'work'}/`,
      ['', 'root', ''].join('/'),
      String.raw`https?://[^\s"']*\b(?:registry|artifactory|verdaccio)\b`,
    ].join('|'),
  );
  const found = texts.flatMap((path) =>
    existsSync(join(root, path))
      ? read(path)
          .split('\n')
          .flatMap((line, index) => (forbidden.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []))
      : [],
  );
  expect(found).toEqual([]);
});

test('the lock file is complete and names no host', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as LockFile;
  const entries = Object.entries(packages).filter(([path]) => path.includes('node_modules/'));
  expect(entries.filter(([, { resolved }]) => resolved?.includes('://')).map(([path]) => path)).toEqual([]);
  // An optional package of another platform that is not locked makes `npm ci` refuse the whole file.
  const optional = Object.values(packages).flatMap((entry) =>
    Object.keys((entry as { optionalDependencies?: Record<string, string> }).optionalDependencies ?? {}),
  );
  const locked = new Set(
    entries.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
  );
  expect(optional.filter((name) => !locked.has(name))).toEqual([]);
});

test('every room opens with its theory of operation', () => {
  const mains = tracked.filter((path) =>
    /^(?:(?:packages|apps)\/[^/]+\/src\/index|(?:bench|torture)\/src\/main)\.ts$/.test(path),
  );
  expect(mains.length).toBeGreaterThanOrEqual(4);
  const bare = mains.filter((path) => {
    const [header] = /^\/\*\*[^]*?\*\//.exec(read(path)) ?? [''];
    return header.split('\n').length < 5;
  });
  expect(bare).toEqual([]);
});

test('.ci/run may be executed', () => {
  expect(execFileSync('git', ['ls-files', '-s', '.ci/run'], { cwd: root, encoding: 'utf8' })).toMatch(/^100755 /);
});

test('comments and texts of sources and documents are in plain English', () => {
  // Phrases that hide who acts, and comments whose first word hides what they are about (docs/glossary.md, Style).
  const phrases = /\b(?:be had|go(?:es)? on|went on|gone on|going on|any more|all the same)\b/;
  const beginnings = /(?:^|[.!?]\s+)(?:Of|What|Whoever)\b/;
  const sources = tracked.filter((path) =>
    /^(?:(?:(?:apps|packages)\/[^/]+|bench|torture)\/src\/(?!.*\bmigrations\/).*\.ts|scripts\/(?!test\/).*\.mjs)$/.test(
      path,
    ),
  );
  const found = sources
    .filter((path) => existsSync(join(root, path)))
    .flatMap((path) => {
      const text = read(path);
      const comments = [...text.matchAll(/\/\*\*?([^]*?)\*\/|(?<=^|\s)\/\/([^\n]*)/gm)].map(
        ({ 0: all, 1: block, 2: line, index }) => ({
          line: text.slice(0, index).split('\n').length,
          words: (block ?? line ?? all).replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim(),
        }),
      );
      const lines = text.split('\n').map((words, index) => ({ line: index + 1, words }));
      return [
        ...comments.filter(({ words }) => phrases.test(words) || beginnings.test(words)),
        ...lines.filter(({ words }) => phrases.test(words)),
      ].map(({ line, words }) => `${path}:${line}: ${words.slice(0, 120)}`);
    });
  const documents = tracked.filter((path) => path.endsWith('.md') && path !== 'docs/glossary.md');
  const said = documents.flatMap((path) =>
    read(path)
      .split('\n')
      .flatMap((words, index) => (phrases.test(words) ? [`${path}:${index + 1}: ${words.trim()}`] : [])),
  );
  expect([...new Set([...found, ...said])]).toEqual([]);
});
