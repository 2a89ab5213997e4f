import { configRows, environmentName } from './keys.js';
import type { ConfigKey } from './keys.js';

const cell = (value: string): string => value.replaceAll('|', '\\|');

const literal = (value: unknown): string => {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return '(empty)';
  return `\`${Array.isArray(value) ? value.join(',') : String(value)}\``;
};

const defaults = (key: ConfigKey): string => {
  const differing = Object.entries(key.defaultFor ?? {}).map(([app, value]) => `; ${app} app ${literal(value)}`);
  return literal(key.default) + differing.join('');
};

const table = (head: readonly string[], rows: readonly string[]): string =>
  [head.join(' | '), head.map(() => '---').join(' | '), ...rows].map((row) => `| ${row} |\n`).join('');

const variables = (name: string, key: ConfigKey): string =>
  key.notFromEnvironment === true
    ? ''
    : [environmentName(name), ...(key.alias === undefined ? [] : [key.alias])].map((text) => `\`${text}\``).join(', ');

/** The tables of docs/configuration.md, generated from `CONFIG_KEYS`, one row a key. Ends with a line feed. */
export const configurationMarkdown = (): string => {
  const all = configRows();
  const rows = all
    .filter(([, { withoutEffect }]) => withoutEffect === undefined)
    .map(([name, key]) =>
      [
        `\`${name}\``,
        variables(name, key),
        key.apps,
        key.type.description ?? '',
        defaults(key),
        key.unit ?? '',
        key.reload === true ? 'yes' : '',
        key.description + (key.secret === true ? ' Secret: never logged.' : ''),
      ]
        .map(cell)
        .join(' | '),
    );
  const head = ['Key', 'Environment', 'App', 'Value', 'Default', 'Unit', 'SIGHUP', 'Meaning'];
  const unused = all.flatMap(([name, key]) =>
    key.withoutEffect === undefined
      ? []
      : [[`\`${name}\``, variables(name, key), key.type.description ?? '', key.withoutEffect].map(cell).join(' | ')],
  );
  return `${table(head, rows)}
Accepted, and without effect: the value is checked, the log warns of it once, and \`keysWithoutEffect\` of \`/actuator/info\` shows it.

${table(['Key', 'Environment', 'Value', 'Why'], unused)}`;
};
