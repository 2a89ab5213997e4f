/** Steps of every command for the REST interface: find the service, name an object, answer. */
import type { Environment, Flag, Given } from '../frame/command.js';
import { exitCode } from '../frame/exit-codes.js';
import { APPS, REST_FLAGS, serviceFor } from './profiles.js';
import type { App } from './profiles.js';
import { RestClient } from './rest-client.js';
import type { Resource } from './resources.js';

export const APP_FLAG: Flag = {
  name: 'app',
  type: 'text',
  choices: APPS,
  help: 'The app to ask, where both can answer.',
};

export const flagsFor = ({ apps }: Pick<Resource, 'apps'>, ...more: readonly Flag[]): readonly Flag[] => [
  ...more,
  ...(apps.length > 1 ? [APP_FLAG] : []),
  ...REST_FLAGS,
];

export const clientFor = async (given: Given, environment: Environment, apps: readonly App[]): Promise<RestClient> =>
  new RestClient(await serviceFor(given, environment, apps), environment.signal);

/** A path with its object. @param id from the user: it never leaves its segment */
export const pathOf = ({ path }: Pick<Resource, 'path'>, id: string | undefined, behind = ''): string =>
  id === undefined ? path : `${path}/${encodeURIComponent(id)}${behind}`;

/** JSON, or the words of `say`. @returns the exit code */
export const answer = (given: Given, { terminal }: Environment, body: unknown, say: () => void): number => {
  if (given.has('json')) terminal.json(body ?? null);
  else say();
  return exitCode('done');
};
