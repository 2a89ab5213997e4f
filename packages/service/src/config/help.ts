import type { ServiceInfo } from '../health/routes.js';
import { configRows, environmentName } from './keys.js';
import type { AppName, ConfigKey } from './keys.js';

const WIDTH = 100;
const INDENT = '      ';

/** Lines of at most `WIDTH` characters, broken at blanks. */
const wrapped = (text: string): string => {
  const lines: string[] = [];
  let line = INDENT;
  for (const word of text.split(' ')) {
    if (line.length + word.length > WIDTH && line.trim() !== '') {
      lines.push(line.trimEnd());
      line = INDENT;
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join('\n');
};

const shown = (value: unknown): string => {
  const text = Array.isArray(value) ? value.join(',') : String(value);
  return text === '' ? 'empty' : text;
};

const row = (app: AppName, name: string, key: ConfigKey): string => {
  const { description = '' } = key.type;
  const unit = key.unit === undefined ? '' : `, in ${key.unit}`;
  const value = key.defaultFor?.[app] ?? key.default;
  const environment = key.notFromEnvironment === true ? [] : [environmentName(name)];
  const names = [`--${name}`, ...environment, ...(key.alias === undefined ? [] : [key.alias])];
  if (key.withoutEffect !== undefined) {
    return `  ${names.join(', ')}\n${wrapped(`Accepted, and without effect: ${key.withoutEffect}.`)}\n`;
  }
  return `  ${names.join(', ')}\n${wrapped(key.description)}\n${wrapped(`Value: ${description}${unit}; default: ${shown(value)}${key.reload === true ? '; SIGHUP reads it again' : ''}`)}\n`;
};

const help = (app: AppName, { name, version }: ServiceInfo): string => {
  const rows = configRows()
    .filter(([, key]) => key.apps === 'both' || key.apps === app)
    .map(([key, config]) => row(app, key, config));
  return `${name} ${version}, the ${app} app of PeSIT Node

node apps/${app}/dist/main.js [--KEY=VALUE | --KEY VALUE | --KEY] ...

Each key may stand in the YAML file that PESIT_CONFIG names (server.port: 8080, or nested), in the
environment, or be a flag; what comes later in this list wins. A bare --KEY is true.
docs/configuration.md has the keys of both apps in one table.

${rows.join('')}
  --help      this text
  --version   name and version

SIGTERM and SIGINT end the service in order; a second one at once.
SIGHUP reads the configuration and the license file again: the keys that say so change at once.
Until admin.password is set, REST is at http://127.0.0.1:8080 alone, with user and password admin.
It is described at /docs.
`;
};

/** The text to print instead of starting when the command line asks for it; undefined: start. */
export const commandLineAnswer = (app: AppName, info: ServiceInfo, argv: readonly string[]): string | undefined => {
  if (argv.includes('--help')) return help(app, info);
  if (argv.includes('--version')) return `${info.name} ${info.version}\n`;
  return undefined;
};
