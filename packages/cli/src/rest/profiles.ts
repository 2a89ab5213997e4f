/** Addresses and logins of services, by name, in a file that its owner alone may read. */
import { chmod, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { codeOf, makeDirectories } from '@pesit-node/ground';

import type { Environment, Flag, Given } from '../frame/command.js';
import { CliError, usageError } from '../frame/exit-codes.js';

export const APPS = ['server', 'client'] as const;
export type App = (typeof APPS)[number];

export interface Profile {
  /** Base addresses, `https://…`. */
  readonly server?: string;
  readonly client?: string;
  readonly user?: string;
  readonly password?: string;
  /** Sent as X-API-Key in place of user and password. */
  readonly apiKey?: string;
  /** PEM file of the CAs that stand behind the services. */
  readonly ca?: string;
}

interface ProfileFile {
  readonly use?: string;
  readonly profiles: Readonly<Record<string, Profile>>;
}

export const REST_FLAGS: readonly Flag[] = [
  {
    name: 'profile',
    type: 'text',
    variable: 'PESIT_PROFILE',
    fallback: 'the one in use',
    help: 'Whom to ask, and with which login.',
  },
  { name: 'url', type: 'text', variable: 'PESIT_URL', help: 'Base address of the service, in place of a profile.' },
  { name: 'user', type: 'text', variable: 'PESIT_USER', help: 'Login, in place of that of the profile.' },
  {
    name: 'password',
    type: 'text',
    variable: 'PESIT_ADMIN_PASSWORD',
    help: 'Its password; rather a profile or the variable.',
  },
  {
    name: 'profiles',
    type: 'path',
    variable: 'PESIT_PROFILES',
    fallback: '~/.config/pesit/profiles.json',
    help: 'The file of profiles.',
  },
];

/** @returns absolute */
export const profilePath = (given: Given, { variables, directory }: Environment): string => {
  const asked = given.text('profiles');
  if (asked !== undefined) return resolve(directory, asked);
  return join(variables['XDG_CONFIG_HOME'] ?? join(variables['HOME'] ?? homedir(), '.config'), 'pesit/profiles.json');
};

const isTextMap = (value: unknown): value is Profile =>
  typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string');

/** @throws CliError local: the file cannot be read, is no file of profiles, or others may read it */
export const readProfiles = async (path: string): Promise<ProfileFile> => {
  const found = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new CliError('local', `${path} cannot be read (${(error as Error).message})`, { cause: error });
  });
  if (found === undefined) return { profiles: {} };
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0) {
    throw new CliError('local', `${path} holds passwords, and other users may read it: run chmod 600 ${path}`);
  }
  try {
    const { use, profiles } = JSON.parse(await readFile(path, 'utf8')) as Partial<ProfileFile>;
    if (typeof profiles !== 'object' || !Object.values(profiles).every(isTextMap)) throw new Error('no "profiles"');
    return { ...(typeof use === 'string' ? { use } : {}), profiles };
  } catch (error) {
    throw new CliError('local', `${path} is no file of profiles (${(error as Error).message})`, { cause: error });
  }
};

/** Replaces the file whole; only its owner may read it. @throws CliError local: it is as it was */
export const writeProfiles = async (path: string, file: ProfileFile): Promise<void> => {
  const fresh = `${path}.new`;
  try {
    await makeDirectories(dirname(path), 0o700);
    await writeFile(fresh, `${JSON.stringify(file, undefined, 2)}\n`, { mode: 0o600 });
    // It may have been there before, with other rights.
    await chmod(fresh, 0o600);
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => undefined);
    throw new CliError(
      'local',
      `${path} cannot be written (${(error as Error).message}): it is as it was; choose another with --profiles`,
      { cause: error },
    );
  }
};

/** @throws CliError usage: there is none of that name */
export const profileNamed = (name: string, profiles: ProfileFile['profiles'], path: string): Profile => {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile !== undefined) return profile;
  const known = Object.keys(profiles).join(', ') || 'none yet';
  throw usageError(`there is no profile ${JSON.stringify(name)} in ${path}; there are: ${known}`);
};

/** Whom to ask. */
export interface Service {
  readonly url: URL;
  readonly app: App | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly apiKey: string | undefined;
  /** PEM. */
  readonly ca: string | undefined;
}

const parseUrl = (text: string, from: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw usageError(`${from}: expected a base address such as https://host:8080, got ${JSON.stringify(text)}`);
  return url;
};

/**
 * The service that a command asks.
 * @param apps those that can answer it, the preferred one first
 * @throws CliError usage or local
 */
export const serviceFor = async (given: Given, environment: Environment, apps: readonly App[]): Promise<Service> => {
  const login = { user: given.text('user'), password: given.text('password') };
  const direct = given.text('url');
  if (direct !== undefined)
    return {
      url: parseUrl(direct, '--url'),
      app: undefined,
      ...login,
      apiKey: environment.variables['PESIT_API_KEY'],
      ca: undefined,
    };
  const path = profilePath(given, environment);
  const { use, profiles } = await readProfiles(path);
  const name = given.text('profile') ?? use;
  if (name === undefined)
    throw usageError(
      'no service is known yet: make a profile (pesit profile set prod --server https://… --client https://… --user admin), or give --url',
    );
  const profile = profileNamed(name, profiles, path);
  const asked = given.text('app') as App | undefined;
  const app = (asked === undefined ? apps : [asked]).find((one) => profile[one] !== undefined);
  if (app === undefined)
    throw usageError(
      `the profile ${name} has no address of the ${asked ?? apps.join(' or ')} app: pesit profile set ${name} --${asked ?? apps[0] ?? ''} https://…`,
    );
  const ca = profile.ca === undefined ? undefined : await readCa(profile.ca);
  return {
    ...{ url: parseUrl(profile[app] ?? '', `profile ${name}`), app, ca },
    ...{ user: login.user ?? profile.user, password: login.password ?? profile.password, apiKey: profile.apiKey },
  };
};

const readCa = async (path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: unknown) => {
    throw new CliError('local', `the CA of the profile cannot be read: ${(error as Error).message}`, { cause: error });
  });
