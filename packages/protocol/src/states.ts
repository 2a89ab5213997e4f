/**
 * The states of §4.8, by the names of the specification (pesit-e.md §4), and what each means for a session: one row a state.
 *
 * Everything that a session, a connection or an app wants to know of a state is a column here, never a comparison of names elsewhere.
 * The messages that may be sent and received are not: they are the table of `automaton.ts`. Suffixes A and B are requester and server; a state
 * without one is a state of both. The suffix `ab` follows an interruption: the file can only be closed and deselected.
 */

export type Role = 'requester' | 'server';

/**
 * The timers of `timers.ts`. `blocked`: Tp, but only while the window of the peer is full. In any state that waits, a peer that
 * does not take what was written has the write timeout instead.
 */
export type Wait = 'connect' | 'response' | 'idle' | 'blocked';

export interface StateRow {
  /** For logs, errors and documents. */
  readonly meaning: string;
  /** Which timer runs, by role; none while it is this side's turn. */
  readonly waits: Readonly<Partial<Record<Role, Wait>>>;
  /** Nothing was said yet, or the connection is over. */
  readonly notConnected: boolean;
  /** The requester has sent RELEASE: that it leaves now is no fault. */
  readonly releaseReceived: boolean;
  /** Connected, and no file, message or release is under way: the next may begin, and leaving harms no file. */
  readonly betweenFiles: boolean;
  /** A file is selected and closed: it may be deselected. */
  readonly fileIsSelected: boolean;
  /** A file is open and no transfer is under way: it may be closed. */
  readonly fileIsOpen: boolean;
  /** Whether this side sends or receives article data now, or all data have gone by (DTF.END). */
  readonly data: 'none' | 'sends' | 'receives' | 'ended';
  /** This side may ask to go back to a sync point; later, ACK(TRANS.END) may be on its way. */
  readonly mayResynchronise: boolean;
  /** Between RESYN and ACK(RESYN): whether this side asked, or has to answer. */
  readonly resynchronising: 'no' | 'asked' | 'to answer';
  /** IDT was sent and ACK(IDT) has not come. */
  readonly interrupting: boolean;
}

const row = (meaning: string, columns: Partial<Omit<StateRow, 'meaning'>> = {}): StateRow => ({
  meaning,
  waits: {},
  notConnected: false,
  releaseReceived: false,
  betweenFiles: false,
  fileIsSelected: false,
  fileIsOpen: false,
  data: 'none',
  mayResynchronise: false,
  resynchronising: 'no',
  interrupting: false,
  ...columns,
});

export const STATES = {
  CN01: row('not connected', { waits: { server: 'connect' }, notConnected: true }),
  CN02A: row('connecting, waiting for ACONNECT or RCONNECT', { waits: { requester: 'response' } }),
  CN02B: row('connecting, waiting for the local answer'),
  CN03: row('connected, no file selected', { waits: { server: 'idle' }, betweenFiles: true }),
  CN04A: row('releasing, waiting for RELCONF', { waits: { requester: 'response' } }),
  CN04B: row('releasing, waiting for the local answer', { releaseReceived: true }),
  SF01A: row('creating, waiting for ACK(CREATE)', { waits: { requester: 'response' } }),
  SF01B: row('creating, waiting for the local answer'),
  SF02A: row('selecting, waiting for ACK(SELECT)', { waits: { requester: 'response' } }),
  SF02B: row('selecting, waiting for the local answer'),
  SF03: row('file selected', { waits: { server: 'response' }, fileIsSelected: true }),
  SF03ab: row('file selected, transfer was interrupted', { waits: { server: 'response' }, fileIsSelected: true }),
  SF04A: row('deselecting, waiting for ACK(DESELECT)', { waits: { requester: 'response' } }),
  SF04B: row('deselecting, waiting for the local answer'),
  OF01A: row('opening, waiting for ACK(ORF)', { waits: { requester: 'response' } }),
  OF01B: row('opening, waiting for the local answer'),
  OF02: row('file open, no transfer', { waits: { server: 'response' }, fileIsOpen: true }),
  OF02ab: row('file open, transfer was interrupted', { waits: { server: 'response' }, fileIsOpen: true }),
  OF03A: row('closing, waiting for ACK(CRF)', { waits: { requester: 'response' } }),
  OF03Aab: row('closing after an interruption, waiting for ACK(CRF)', { waits: { requester: 'response' } }),
  OF03B: row('closing, waiting for the local answer'),
  OF03Bab: row('closing after an interruption, waiting for the local answer'),
  TDE01A: row('writing, waiting for ACK(WRITE)', { waits: { requester: 'response' } }),
  TDE01B: row('writing, waiting for the local answer'),
  TDE02A: row('writing, sending data', { waits: { requester: 'blocked' }, data: 'sends', mayResynchronise: true }),
  TDE02B: row('writing, receiving data', { waits: { server: 'response' }, data: 'receives', mayResynchronise: true }),
  TDE03: row('writing, RESYN sent', { waits: { requester: 'response', server: 'response' }, resynchronising: 'asked' }),
  TDE04: row('writing, RESYN received', { resynchronising: 'to answer' }),
  TDE05: row('writing, IDT sent', { waits: { requester: 'response', server: 'response' }, interrupting: true }),
  TDE06: row('writing, IDT received'),
  TDE07: row('writing, data ended', { waits: { server: 'response' }, data: 'ended', mayResynchronise: true }),
  TDE08A: row('writing, waiting for ACK(TRANS.END)', { waits: { requester: 'response' } }),
  TDE08B: row('writing, end of transfer waits for the local answer'),
  TDL01A: row('reading, waiting for ACK(READ)', { waits: { requester: 'response' } }),
  TDL01B: row('reading, waiting for the local answer'),
  TDL02A: row('reading, receiving data', {
    waits: { requester: 'response' },
    data: 'receives',
    mayResynchronise: true,
  }),
  TDL02B: row('reading, sending data', { waits: { server: 'blocked' }, data: 'sends', mayResynchronise: true }),
  TDL03: row('reading, RESYN sent', { waits: { requester: 'response', server: 'response' }, resynchronising: 'asked' }),
  TDL04: row('reading, RESYN received', { resynchronising: 'to answer' }),
  TDL05: row('reading, IDT sent', { waits: { requester: 'response', server: 'response' }, interrupting: true }),
  TDL06: row('reading, IDT received'),
  TDL07: row('reading, data ended', { waits: { server: 'response' }, data: 'ended', mayResynchronise: true }),
  TDL08A: row('reading, waiting for ACK(TRANS.END)', { waits: { requester: 'response' } }),
  TDL08B: row('reading, end of transfer waits for the local answer'),
  MG01A: row('message sent, waiting for ACK(MSG)', { waits: { requester: 'response' } }),
  MG01B: row('message received, waiting for the local answer'),
  MG02A: row('segmented message being sent'),
  MG02B: row('segmented message being received', { waits: { server: 'response' } }),
} as const satisfies Record<string, StateRow>;

export type State = keyof typeof STATES;
