import { PesitRequester } from '@pesit-node/net';
import { toPesitError } from '@pesit-node/transfers';

import type { Environment, Given } from '../frame/command.js';
import { interruption, TransferFailure } from './attempts.js';
import { negotiatedIn, report, saidIn, tlsIn } from './report.js';
import { targetOf } from './target.js';

const open = async (given: Given, environment: Environment) => {
  const { options } = await targetOf(given, environment, 2);
  const abort = new AbortController();
  environment.signal.addEventListener('abort', () => abort.abort(interruption(environment.signal.reason)), {
    once: true,
  });
  const began = performance.now();
  try {
    const session = await PesitRequester.open({ ...options(), signal: abort.signal });
    const latency = Math.round(performance.now() - began);
    const answer = {
      ...{ latency, roundTrip: Math.round(session.roundTripMs * 10) / 10 },
      ...{ negotiated: negotiatedIn(session), tls: tlsIn(session), advice: session.advice ?? null, ...saidIn(session) },
    };
    await session.release();
    return answer;
  } catch (thrown) {
    throw new TransferFailure(toPesitError(thrown), 1, true);
  }
};

/** `pesit test`. */
export const test = (given: Given, environment: Environment): Promise<number> =>
  report(
    given,
    environment,
    () => open(given, environment),
    ({ latency, roundTrip, negotiated, tls, advice, partnerSaid }) => [
      `${given.required('server-id')} accepts ${given.required('partner')}: session open in ${latency} ms, round trip ${roundTrip} ms`,
      `points every ${negotiated.syncIntervalKb} KB, window ${negotiated.syncWindow}, CRC ${negotiated.crc ? 'on' : 'off'}, ${negotiated.dialect}`,
      ...(tls === null ? [] : [`${tls.protocol}, ${tls.cipher}`]),
      ...(!tls?.certificate
        ? []
        : [
            `certificate ${tls.certificate.subject}, ${tls.certificate.daysRemaining} days left, ${tls.certificate.fingerprint}`,
          ]),
      ...(advice === null ? [] : [advice]),
      ...(partnerSaid === undefined ? [] : [`the partner says: ${partnerSaid}`]),
    ],
  );
