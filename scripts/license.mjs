/**
 * `npm run license -- <command>`: the vendor's tool (docs/license.md). Makes the key pair, issues licenses, and shows and
 * checks them. Private keys are written encrypted, and never into this repository.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { newPassphrase, passphraseOf } from './lib/passphrase.mjs';
import { Failure, main, requireNode, root } from './lib/process.mjs';
import { ensureBuilt, ensureInstalled } from './lib/workspace.mjs';

const USAGE = `npm run license -- <command> [flags]

  keygen   --out DIR                  license-private.pem (encrypted) and license-public.pem; not inside this repository
           [--bits 3072] [--passphrase-file FILE]
  issue    --key FILE                 the private key
           --type PROFESSIONAL|BUSINESS|ENTERPRISE
           --customer NAME --email ADDRESS --expires 2027-12-31
           [--license-id ID] [--max-clusters N] [--max-pods N] (-1 = unlimited; default: those of the type)
           [--not-before 2027-01-01] [--out FILE] [--passphrase-file FILE]
  inspect  [FILE]                     what a license says, whoever signed it; standard input without FILE
  verify   --public-key FILE [FILE]   whether this license can be installed now; exit code 1 when not
  bake     --public-key FILE          makes a build for customers of a built tree: this key alone counts in it
           --tree DIR                 where packages/license/dist is, or node_modules/@pesit-node/license/dist: a copy
           [--max-extension-days N]   most days that extend-evaluation adds in all

The passphrase is typed, or comes from PESIT_LICENSE_PASSPHRASE or --passphrase-file.`;

const FLAGS = {
  keygen: ['out', 'bits', 'passphrase-file'],
  issue: [
    ...['key', 'type', 'customer', 'email', 'expires', 'license-id'],
    ...['max-clusters', 'max-pods', 'not-before', 'out', 'passphrase-file'],
  ],
  inspect: [],
  verify: ['public-key'],
  bake: ['public-key', 'tree', 'max-extension-days'],
};

function parse(command, args) {
  const options = Object.fromEntries(FLAGS[command].map((name) => [name, { type: 'string' }]));
  try {
    return parseArgs({ args, options, allowPositionals: ['inspect', 'verify'].includes(command) });
  } catch (error) {
    throw new Failure(`${error.message}\n\n${USAGE}`);
  }
}

function required(values, ...names) {
  const missing = names.filter((name) => !values[name]);
  if (missing.length > 0) throw new Failure(`missing: ${missing.map((name) => `--${name}`).join(', ')}\n\n${USAGE}`);
}

/** The real path of a folder that may not exist yet, symbolic links followed. */
function realPath(path) {
  const absolute = resolve(path);
  return existsSync(absolute) ? realpathSync(absolute) : join(realPath(dirname(absolute)), basename(absolute));
}

function refuseInsideRepository(directory) {
  const inside = relative(realpathSync(root), directory);
  if (inside === '' || !inside.startsWith('..')) {
    throw new Failure(
      `${directory} is inside this repository: a private key must never be where it could be committed`,
    );
  }
}

function writeNew(path, text, mode) {
  try {
    writeFileSync(path, text, { mode, flag: 'wx' });
  } catch (error) {
    if (error.code === 'EEXIST') throw new Failure(`${path} exists already: it is not overwritten`);
    throw new Failure(error.message);
  }
}

function read(path, what) {
  try {
    return readFileSync(path ?? 0, 'utf8');
  } catch (error) {
    throw new Failure(`${what} cannot be read: ${error.message}`);
  }
}

async function keygen({ values }) {
  required(values, 'out');
  const bits = Number(values.bits ?? 3072);
  if (![2048, 3072, 4096].includes(bits)) throw new Failure(`--bits: expected 2048, 3072 or 4096, got ${values.bits}`);
  const directory = realPath(values.out);
  refuseInsideRepository(directory);
  const passphrase = await newPassphrase(values['passphrase-file']);
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const paths = ['license-private.pem', 'license-public.pem'].map((name) => join(directory, name));
  const encrypted = privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase });
  writeNew(paths[0], encrypted, 0o600);
  writeNew(paths[1], publicKey.export({ type: 'spki', format: 'pem' }), 0o644);
  console.log(`Private key, encrypted: ${paths[0]}\nPublic key, for license.public-key: ${paths[1]}`);
  return 0;
}

async function openKey(path, passphraseFile) {
  const pem = read(path, '--key');
  const encrypted = pem.includes('ENCRYPTED');
  if (!encrypted) console.error(`warning: ${path} is not encrypted`);
  const passphrase = encrypted ? await passphraseOf(path, passphraseFile) : undefined;
  try {
    return createPrivateKey({ key: pem, ...(passphrase === undefined ? {} : { passphrase }) });
  } catch {
    throw new Failure(`${path}: not a private key in PEM, or a wrong passphrase`);
  }
}

const count = (name, text) => {
  if (text === undefined) return {};
  if (!/^-?\d{1,6}$/.test(text)) throw new Failure(`--${name}: expected a number or -1, got ${text}`);
  return { [name === 'max-pods' ? 'maxPodsPerCluster' : 'maxClusters']: Number(text) };
};

function notBefore(day) {
  if (day === undefined) return {};
  const time = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(time)) throw new Failure(`--not-before: expected a day as 2027-01-01, got ${day}`);
  return { nbf: time / 1000 };
}

async function issue({ values }, { issueLicense, IssueError }) {
  required(values, 'key', 'type', 'customer', 'email', 'expires');
  const claims = {
    licenseId: values['license-id'] ?? `L-${randomBytes(6).toString('hex').toUpperCase()}`,
    type: values.type,
    customer: values.customer,
    email: values.email,
    ...count('max-clusters', values['max-clusters']),
    ...count('max-pods', values['max-pods']),
    expiryDate: values.expires,
    ...notBefore(values['not-before']),
  };
  const key = await openKey(values.key, values['passphrase-file']);
  let text;
  try {
    text = issueLicense(claims, key);
  } catch (error) {
    if (error instanceof IssueError) throw new Failure(error.message);
    throw error;
  }
  if (values.out === undefined) console.log(text);
  else writeNew(values.out, `${text}\n`, 0o644);
  console.error(`License ${claims.licenseId} for ${claims.customer}, valid to the end of ${claims.expiryDate} (UTC)`);
  return 0;
}

function inspect({ positionals }, { inspectLicense }) {
  const found = inspectLicense(read(positionals[0], 'the license'));
  if (found === undefined) throw new Failure('This is not a license: expected base64 of a JWT');
  console.log(JSON.stringify(found, undefined, 2));
  console.error('The signature was not checked: see `verify`.');
  return 0;
}

async function verify({ values, positionals }, { checkLicense, EVALUATION_BUILD, loadPublicKey }) {
  required(values, 'public-key');
  const key = await loadPublicKey(values['public-key'], EVALUATION_BUILD).catch((error) => {
    throw new Failure(error.message);
  });
  const result = checkLicense(read(positionals[0], 'the license'), key, Date.now());
  if (!result.ok) throw new Failure(`Not valid (${result.refusal.fault}): ${result.refusal.message}`);
  const { licenseId, type, customer, expiryDate } = result.license;
  console.log(`Valid: ${type} license ${licenseId} for ${customer}, to the end of ${expiryDate} (UTC)`);
  return 0;
}

async function bake({ values }, { bakeBuild, BakeError, LicenseKeyError }) {
  required(values, 'public-key', 'tree');
  const cap = values['max-extension-days'];
  if (cap !== undefined && !/^\d{1,6}$/.test(cap)) {
    throw new Failure(`--max-extension-days: expected a number of days, got ${cap}`);
  }
  const tree = realPath(values.tree);
  if (tree === realpathSync(root)) {
    throw new Failure('--tree is this repository: bake a copy, or its own tests and builds would have the key inside');
  }
  const places = ['packages/license/dist', 'node_modules/@pesit-node/license/dist'].map((place) => join(tree, place));
  const dist = places.find((place) => existsSync(join(place, 'build.js')));
  if (dist === undefined) throw new Failure(`${tree} holds no build: neither ${places.join(' nor ')} has a build.js`);
  const options = { dist, vendorKey: read(values['public-key'], '--public-key') };
  if (cap !== undefined) options.maxExtensionDays = Number(cap);
  try {
    const { bits, fingerprint } = await bakeBuild(options);
    console.log(`A build for customers: ${dist} has the key ${fingerprint} (${bits} bits) inside`);
  } catch (error) {
    if (error instanceof BakeError || error instanceof LicenseKeyError) throw new Failure(error.message);
    throw error;
  }
  return 0;
}

const COMMANDS = { keygen, issue, inspect, verify, bake };

await main(async () => {
  requireNode();
  const [command, ...args] = process.argv.slice(2);
  if (command === undefined || command === 'help' || process.argv.includes('--help')) {
    console.log(USAGE);
    return command === undefined ? 1 : 0;
  }
  if (!Object.hasOwn(COMMANDS, command)) throw new Failure(`unknown command ${command}\n\n${USAGE}`);
  const flags = parse(command, args);
  if (command === 'keygen') return keygen(flags);
  await ensureInstalled();
  await ensureBuilt(['packages/license']);
  const library = new URL('../packages/license/dist/index.js', import.meta.url);
  return COMMANDS[command](flags, await import(library.href));
});
