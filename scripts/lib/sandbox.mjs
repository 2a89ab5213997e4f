/**
 * The image without a container engine: its root file system by the same script as in deploy/Dockerfile, run by bubblewrap with the
 * claims that the image makes: another user, everything read-only but the data, no process but Node.
 */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, findProgram, root, runQuietly } from './process.mjs';
import { STRANGER } from './unpacked.mjs';

const asStranger = () => (process.getuid?.() === 0 ? { uid: STRANGER, gid: STRANGER } : {});

/** Why nothing can be tried in a sandbox here, or undefined. */
export async function sandboxFault() {
  const bwrap = findProgram('bwrap');
  if (bwrap === undefined) return 'bubblewrap (bwrap) is not installed';
  try {
    await runQuietly(bwrap, ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', 'true'], asStranger());
    return undefined;
  } catch (error) {
    return `this machine lets no user make namespaces: ${error.message.split('\n').at(-2) ?? error.message}`;
  }
}

const PROGRAM = 'usr/local/bin/node';

/** Lays out the image of a tarball in the folder `image`, and makes sure that nothing in it can run but Node. */
export async function layOutImage(node, tarball, image) {
  await runQuietly('sh', [join(root, 'deploy/root.sh'), node, tarball, image]);
  chmodSync(image, 0o755);
  const files = readdirSync(image, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, path, name }) => join(parentPath ?? path, name));
  const programs = files
    .filter((file) => statSync(file).mode & 0o111 && !/\.so(?:\.\d+)*$/.test(file))
    .map((file) => file.slice(image.length + 1))
    .filter((file) => file !== PROGRAM && !file.startsWith('app/node_modules/'));
  if (programs.length > 0) throw new Failure(`The image holds programs beside Node: ${programs.join(', ')}`);
  const shells = files.filter((file) => /\/(?:ba|da|z)?sh$|\/(?:busybox|npm|npx|corepack)$/.test(file));
  if (shells.length > 0) throw new Failure(`The image holds ${shells.join(', ')}`);
}

/** The command that runs Node with these arguments in the image, as process 1, with `data` at /data. */
export function inImage(image, data, args) {
  return [
    findProgram('bwrap'),
    ...['--unshare-all', '--share-net', '--as-pid-1', '--die-with-parent', '--new-session', '--cap-drop', 'ALL'],
    ...['--ro-bind', image, '/', '--proc', '/proc', '--dev', '/dev', '--bind', data, '/data', '--chdir', '/app'],
    ...['--remount-ro', '/dev', `/${PROGRAM}`, ...args],
  ];
}

/** A program for `inImage`: who it runs as, its process number, and what of the places that a service could want it can write. */
const PROBE = `
  import { writeFileSync } from 'node:fs';
  const told = { uid: process.getuid(), pid: process.pid, written: [] };
  for (const place of ['/', '/app', '/app/node_modules', '/etc', '/usr/local/bin', '/tmp', '/dev', '/data']) {
    try { writeFileSync(place + '/probe', ''); told.written.push(place); } catch {}
  }
  console.log(JSON.stringify(told));`;

/** Tries the claims of the image. @throws Failure with what does not hold */
export async function tryClaims(image, data) {
  mkdirSync(data, { recursive: true });
  const [program, ...args] = inImage(image, data, ['--input-type=module', '-e', PROBE]);
  const told = JSON.parse(await runQuietly(program, args, { ...asStranger(), env: {} }));
  const wanted = { uid: process.getuid() === 0 ? STRANGER : process.getuid(), pid: 1, written: ['/data'] };
  if (JSON.stringify(told) !== JSON.stringify(wanted)) {
    throw new Failure(`The image: expected ${JSON.stringify(wanted)}, got ${JSON.stringify(told)}`);
  }
  return told;
}

/** The process of the service behind a running bubblewrap: the one to be told to stop. */
export function insidePid(pid) {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  if (!child) throw new Failure(`bubblewrap (process ${pid}) runs nothing`);
  return Number(child);
}
