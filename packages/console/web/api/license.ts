import { answerOf, serverApp } from './rest.ts';
import type { components } from './generated/server.ts';

export type License = components['schemas']['License'];

// Both apps have these alike.
export const readLicense = (signal?: AbortSignal): Promise<License> =>
  answerOf(serverApp.GET('/api/v1/license', signal === undefined ? {} : { signal }));

/** @param anyway also where it allows less than the license in force */
export const installLicense = (license: string, anyway: boolean): Promise<License> =>
  answerOf(
    serverApp.POST('/api/v1/license', {
      body: { license },
      params: { query: anyway ? { force: 'true' } : {} },
    }),
  );

export const extendEvaluation = (days: number): Promise<License> =>
  answerOf(serverApp.POST('/api/v1/license/extend-evaluation', { body: { days } }));
