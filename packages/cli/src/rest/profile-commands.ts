import type { Command, Flag } from '../frame/command.js';
import { exitCode, usageError } from '../frame/exit-codes.js';
import { table } from '../frame/figures.js';
import { profileNamed, profilePath, readProfiles, writeProfiles } from './profiles.js';
import type { Profile } from './profiles.js';

const FILE_FLAG: Flag = {
  ...{ name: 'profiles', type: 'path', variable: 'PESIT_PROFILES', fallback: '~/.config/pesit/profiles.json' },
  help: 'The file of profiles.',
};
const NAME = { name: 'NAME', help: 'Name of the profile.', required: true } as const;

const FIELDS = ['server', 'client', 'user', 'password', 'api-key', 'ca'] as const;

export const PROFILE_COMMANDS: readonly Command[] = [
  {
    words: ['profile', 'set'],
    summary: 'Makes a profile, or changes what is given of it',
    about: 'The file can be read by its owner alone. The first profile is the one in use.',
    arguments: [NAME],
    flags: [
      { name: 'server', type: 'text', value: 'URL', help: 'Base address of the server app.' },
      { name: 'client', type: 'text', value: 'URL', help: 'Base address of the client app.' },
      { name: 'user', type: 'text', help: 'Login.' },
      { name: 'password', type: 'text', variable: 'PESIT_ADMIN_PASSWORD', help: 'Its password.' },
      { name: 'api-key', type: 'text', variable: 'PESIT_API_KEY', help: 'API key, in place of login and password.' },
      { name: 'ca', type: 'path', help: 'PEM file of the CAs behind the services; an absolute path.' },
      FILE_FLAG,
    ],
    run: async (given, environment) => {
      const path = profilePath(given, environment);
      const file = await readProfiles(path);
      const name = given.required('NAME');
      const changes = FIELDS.flatMap((field) => {
        const value = given.text(field);
        return value === undefined ? [] : [[field === 'api-key' ? 'apiKey' : field, value] as const];
      });
      for (const [field, value] of changes) {
        if ((field === 'server' || field === 'client') && !/^https?:\/\//.test(value))
          throw usageError(
            `--${field}: expected a base address such as https://host:8080, got ${JSON.stringify(value)}`,
          );
      }
      const profile: Profile = { ...file.profiles[name], ...Object.fromEntries(changes) };
      await writeProfiles(path, { use: file.use ?? name, profiles: { ...file.profiles, [name]: profile } });
      environment.terminal.say(`profile ${name} kept in ${path}`);
      return exitCode('done');
    },
  },
  {
    words: ['profile', 'list'],
    summary: 'Lists the profiles',
    arguments: [],
    flags: [FILE_FLAG],
    run: async (given, environment) => {
      const { use, profiles } = await readProfiles(profilePath(given, environment));
      const rows = Object.entries(profiles).map(([name, { server, client, user, apiKey }]) => ({
        ...{ inUse: name === use, name, server: server ?? null, client: client ?? null },
        login: apiKey === undefined ? (user ?? null) : 'API key',
      }));
      if (given.has('json')) environment.terminal.json(rows);
      else
        for (const line of table(
          ['', 'name', 'server', 'client', 'login'],
          rows.map((row) => [row.inUse ? '*' : '', row.name, row.server ?? '-', row.client ?? '-', row.login ?? '-']),
        ))
          environment.terminal.say(line);
      return exitCode('done');
    },
  },
  {
    words: ['profile', 'use'],
    summary: 'Makes a profile the one in use',
    arguments: [NAME],
    flags: [FILE_FLAG],
    run: async (given, environment) => {
      const path = profilePath(given, environment);
      const { profiles } = await readProfiles(path);
      const name = given.required('NAME');
      profileNamed(name, profiles, path);
      await writeProfiles(path, { use: name, profiles });
      environment.terminal.say(`${name} is in use`);
      return exitCode('done');
    },
  },
  {
    words: ['profile', 'delete'],
    summary: 'Removes a profile',
    arguments: [NAME],
    flags: [FILE_FLAG],
    run: async (given, environment) => {
      const path = profilePath(given, environment);
      const { use, profiles } = await readProfiles(path);
      const name = given.required('NAME');
      profileNamed(name, profiles, path);
      const left = Object.fromEntries(Object.entries(profiles).filter(([one]) => one !== name));
      await writeProfiles(path, { ...(use === undefined || use === name ? {} : { use }), profiles: left });
      environment.terminal.say(`profile ${name} removed`);
      return exitCode('done');
    },
  },
];
