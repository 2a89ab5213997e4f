import type { RemoteServer } from '../api/configuration.ts';
import { words as configuration } from '../texts/configuration.ts';
import { texts } from '../texts/index.ts';
import { Pill } from './pills.tsx';
import type { Mood } from './pills.tsx';

const MOODS: Readonly<Record<RemoteServer['status'], Mood>> = {
  UNKNOWN: '',
  CONNECTED: 'good',
  UNREACHABLE: 'bad',
  REFUSED: 'bad',
};

/** How the last contact went; of one that is not used, that it is not. */
export const ServerPill = ({ of }: { readonly of: Pick<RemoteServer, 'status' | 'enabled'> }) =>
  of.enabled ? (
    <Pill mood={MOODS[of.status]}>{texts.value.serverStatus[of.status]}</Pill>
  ) : (
    <Pill mood="">{configuration.value.common.disabled}</Pill>
  );
