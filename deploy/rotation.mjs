/**
 * Finishes the rotation of `secrets.key` for one app (docs/secrets.md) and says what it did: `npm run rotate-secrets`, and
 * `rotate-secrets.mjs` of a tarball.
 */
const SHOWN_NAMES = 20;

const names = (owners, total) => {
  const shown = owners.slice(0, SHOWN_NAMES).map((name) => JSON.stringify(name));
  return [...shown, ...(total > shown.length ? [`and ${total - shown.length} more`] : [])].join(', ');
};

/** Which keys the secrets of a column need. */
function columnLine({ table, column, keys }, { keyId, keyIds }) {
  const place = (id) => (id === keyId ? '' : keyIds.includes(id) ? ' (older)' : ' (not in secrets.key)');
  const counts = Object.entries(keys).map(([id, total]) =>
    id === 'none' ? `${total} without a key, as the first versions made them` : `${total} under ${id}${place(id)}`,
  );
  return `  ${table}.${column}: ${counts.join(', ') || 'none'}`;
}

function report(app, rotation) {
  const { keyId, keyIds, sealed, unreadable, columns } = rotation;
  const olderOf = (kind) => columns.filter((one) => one.kind === kind && one.older > 0);
  const total = (some) => some.reduce((sum, { older }) => sum + older, 0);
  console.log(`${app} app, first key of secrets.key: ${keyId}; ${sealed} sealed anew`);
  for (const column of columns) console.log(columnLine(column, rotation));
  const [left, hashes] = [olderOf('sealed'), olderOf('hash')];
  if (unreadable.length > 0)
    console.log(
      `Cannot be opened, and stay as they are: ${names(unreadable, unreadable.length)}. Set their passwords again (PUT /api/v1/servers/{id}), give keystores anew (PUT /api/v1/certificates/keystores/{name}) and secrets of hooks (PUT /api/v1/hooks/{hookId}), or add the key to secrets.key.`,
    );
  for (const { column, owners, older } of hashes)
    console.log(
      `Still under older keys, ${column}: ${names(owners, older)}. The next login of each renews it, and so does a new password.`,
    );
  const count = total(left) + total(hashes);
  const others = keyIds.length > 1 ? ': the others can be removed from secrets.key' : ', and secrets.key holds none';
  console.log(
    count === 0
      ? `Nothing needs an older key${others}`
      : `${count} still need an older key: leave it in secrets.key, and run this again later`,
  );
  return total(left) === 0 && unreadable.length === 0 ? 0 : 1;
}

const progress = (looked, of) => console.error(`${looked} of ${of} remote servers`);

/** An error that the operator can correct: printed as a sentence, without a stack. */
const SENTENCES = ['ConfigError', 'EmbeddedDatabaseError', 'DirectoryLockedError', 'SecretError'];

/**
 * @param rotate of the app: `rotateServerSecrets`, `rotateClientSecrets`
 * @param argv flags of the app
 * @returns the exit code: 1 when something is left that cannot be opened, or it could not be tried
 */
export async function rotateSecrets(app, rotate, argv) {
  try {
    return report(app, await rotate({ env: process.env, argv, cwd: process.cwd() }, progress));
  } catch (error) {
    // Errors of the system and of PostgreSQL, which is not reached or refuses.
    if (!SENTENCES.includes(error.name) && error.code === undefined) throw error;
    console.error(error.message || String(error.code));
    return 1;
  }
}
