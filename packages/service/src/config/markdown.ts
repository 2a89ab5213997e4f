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

/** The table of docs/configuration.md, one row a key, generated from `CONFIG_KEYS`. Ends with a line feed. */
export const configurationMarkdown = (): string => {
  const rows = configRows().map(([name, key]) =>
    [
      `\`${name}\``,
      [environmentName(name), ...(key.alias === undefined ? [] : [key.alias])].map((text) => `\`${text}\``).join(', '),
      key.apps,
      key.type.description ?? '',
      defaults(key),
      key.unit ?? '',
      key.description + (key.secret === true ? ' Secret: never logged.' : ''),
    ]
      .map(cell)
      .join(' | '),
  );
  const head = ['Key', 'Environment', 'App', 'Value', 'Default', 'Unit', 'Meaning'];
  return [head.join(' | '), head.map(() => '---').join(' | '), ...rows].map((row) => `| ${row} |\n`).join('');
};
