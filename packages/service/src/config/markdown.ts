import { configRows, environmentName } from './keys.js';
import type { ConfigKey } from './keys.js';
import { REFUSED_KEYS } from './refused.js';

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

/** The tables of docs/configuration.md, generated from `CONFIG_KEYS` and `REFUSED_KEYS`, one row a key. Ends with a line feed. */
export const configurationMarkdown = (): string => {
  const rows = configRows().map(([name, key]) =>
    [
      `\`${name}\``,
      [environmentName(name), ...(key.alias === undefined ? [] : [key.alias])].map((text) => `\`${text}\``).join(', '),
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
  const refused = Object.entries(REFUSED_KEYS).map(([name, why]) => `\`${name}\` | ${why ?? ''}`);
  return `${table(head, rows)}\nRefused, so that nobody believes that they work:\n\n${table(['Key', 'Why'], refused)}`;
};
