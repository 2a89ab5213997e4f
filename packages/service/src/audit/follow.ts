import type { EventStream } from '../events/event-stream.js';
import { CONFIGURATION_CHANGED, LOGIN_FAILED, OPERATION_DONE } from '../events/events.js';
import type { Audit } from './audit.js';
import { Collapse } from './collapse.js';

/** Entries in an hour that failed logins and refused requests may make each. */
const PER_HOUR = 60;

/** Answers that say that a request was wrong: nothing was tried. */
const NOT_TRIED: ReadonlySet<string> = new Set(['VALIDATION_ERROR', 'NOT_FOUND', 'SERVER_NOT_FOUND', 'UNPROCESSABLE']);

/** Notes what every service has: changes that were not stored with their entry, operations that declare it, refusals. */
export const auditService = (
  events: EventStream,
  audit: Pick<Audit, 'note' | 'include'>,
  now = () => performance.now(),
): void => {
  const logins = new Collapse({ perHour: PER_HOUR, now });
  const refusals = new Collapse({ perHour: PER_HOUR, now });
  audit.include(() => [...logins.due(), ...refusals.due()]);

  events.subscribe(CONFIGURATION_CHANGED, ({ what, action, facts, by, recorded }) => {
    if (recorded === true) return;
    const [object] = Object.values(facts);
    audit.note({ by, action, objectType: what, object: String(object), details: facts });
  });
  events.subscribe(LOGIN_FAILED, ({ address, user, result }) => {
    const entry = { by: { actor: user, address }, action: 'login failed', objectType: 'login', details: { result } };
    for (const one of logins.take(`${address} ${user}`, entry)) audit.note(one);
  });
  events.subscribe(OPERATION_DONE, ({ by, audit: declared, recorded, method, path, object, error }) => {
    if (error?.code === 'FORBIDDEN') {
      const details = { reason: error.message };
      const entry = { by, action: 'refused', objectType: 'operation', object: `${method} ${path}`, details };
      for (const one of refusals.take(`${by?.actor ?? ''} ${entry.object}`, entry)) audit.note(one);
      return;
    }
    if (declared === undefined || (error !== undefined && NOT_TRIED.has(error.code))) return;
    if (error === undefined && recorded) return;
    const [objectType, action] = declared;
    audit.note({
      ...{ by, action, objectType },
      ...(object === undefined ? {} : { object }),
      ...(error === undefined ? {} : { details: { failed: error.message } }),
    });
  });
};
