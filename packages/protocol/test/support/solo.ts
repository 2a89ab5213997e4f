/** One session alone, brought into any state by its verbs and by bytes of the independent builder. */
import { RequesterSession, ServerSession, burstBufferSize } from '../../src/index.js';
import type { CompressionMode, Dialect, Role, State } from '../../src/index.js';
import { START, fill, dissect, entity, fpdu, minimal, num, pi, withCrc } from '../../src/testing/index.js';
import type { Dissected, Name } from '../../src/testing/index.js';
import { CREATE, SELECT, refusal } from './pair.js';

/** Identifiers of the session and of its peer. */
export const OWN = 5;
export const PEER = 9;

const SYNC = { intervalKb: 1, window: 8 };
const reason = refusal('2-216', 'stopped');

/** What both sides want of the connection and its files. */
export interface SoloTerms {
  readonly dialect?: Dialect;
  /** PI 1. Default false. */
  readonly crc?: boolean;
  /** PI 7: points of 1 KB, 8 of them unacknowledged. Default true. */
  readonly points?: boolean;
  /** PI 21. Default 0, none. */
  readonly compression?: CompressionMode | 0;
  /** PI 22. Default 2, both. */
  readonly access?: 0 | 1 | 2;
  /** PI 23. Default true. */
  readonly resynchronisation?: boolean;
}

export class Solo {
  readonly role: Role;
  readonly terms: Required<SoloTerms>;
  readonly requester: RequesterSession;
  readonly server: ServerSession;

  constructor(role: Role, terms: SoloTerms = {}) {
    this.role = role;
    this.terms = {
      dialect: 'length-prefixed',
      crc: false,
      points: true,
      compression: 0,
      access: 2,
      resynchronisation: true,
      ...terms,
    };
    const options = { dialect: this.terms.dialect, now: 0, connectionId: OWN };
    this.requester = new RequesterSession(options, this.terms.crc);
    this.server = new ServerSession(options);
  }

  get session(): RequesterSession | ServerSession {
    return this.role === 'requester' ? this.requester : this.server;
  }

  /** @returns what it sends, as FPDUs */
  hear(...fpdus: readonly Buffer[]): Dissected[] {
    const sealed = this.terms.crc ? fpdus.map(withCrc) : fpdus;
    return this.hearBytes(Buffer.concat(this.terms.dialect === 'raw' ? sealed : sealed.map((one) => entity(one))));
  }

  /** Bytes as they are, framing and CRC included. */
  hearBytes(bytes: Buffer): Dissected[] {
    this.session.receive(bytes, 0);
    while (this.session.nextEvent() !== undefined);
    return this.sent();
  }

  sent(): Dissected[] {
    return dissect(Buffer.concat(this.session.takeOutput()), this.terms.dialect, this.terms.crc);
  }

  /** FPDUs with their mandatory parameters alone. */
  hearMinimal(...names: readonly Name[]): Dissected[] {
    return this.hear(...names.map((name) => this.minimal(name)));
  }

  minimal(name: Name): Buffer {
    const named = ['CONNECT', 'ACONNECT', 'RELEASE', 'RELCONF', 'ABORT'].includes(name);
    return minimal(name, name === 'CONNECT' ? 0 : OWN, named ? PEER : 0);
  }

  /** Two points: three articles of 1,000 bytes. */
  sendArticles(): void {
    const articles = [1, 2, 3].map((n) => Buffer.alloc(1000, n));
    fill(this.session.beginBurst(Buffer.alloc(burstBufferSize(4096, 0))), articles, 0);
    this.session.endBurst();
  }
}

type Step = (solo: Solo) => void;
const steps =
  (...all: readonly Step[]): Step =>
  (solo) => {
    for (const step of all) step(solo);
  };
const hear =
  (...names: readonly Name[]): Step =>
  (solo) => {
    solo.hearMinimal(...names);
  };

/** PI 21 of ORF and its answer, when there is one. */
const compressionOf = ({ terms: { compression } }: Solo): string | Buffer =>
  compression === 0 ? '' : pi(21, num(0x100 | compression, 2));

const interrupt: Step = (solo) => void solo.session.interrupt(4, reason);
const resynchronise: Step = (solo) => void solo.session.resynchronise(reason, 0);

const R = {
  connect: (solo: Solo) => {
    const { access, points, resynchronisation, crc } = solo.terms;
    const syncPoints = points ? SYNC : undefined;
    solo.requester.connect({ requester: 'A', server: 'B', accessType: access, syncPoints, resynchronisation, crc });
  },
  connected: (solo: Solo) => {
    R.connect(solo);
    const { points, resynchronisation } = solo.terms;
    const facilities = [points ? '0703000108' : '0703000000', resynchronisation ? '170101' : ''];
    solo.hear(fpdu('ACONNECT', OWN, PEER, '060102', ...facilities));
  },
  create: steps(
    (solo) => R.connected(solo),
    (solo) => solo.requester.create({ ...CREATE, compression: solo.terms.compression }),
  ),
  select: steps(
    (solo) => R.connected(solo),
    (solo) => solo.requester.select({ ...SELECT, compression: solo.terms.compression }),
  ),
  created: steps((solo) => R.create(solo), hear('ACK(CREATE)')),
  selected: steps((solo) => R.select(solo), hear('ACK(SELECT)')),
  open: (solo: Solo) => {
    solo.requester.open();
    solo.hear(fpdu('ACK(ORF)', OWN, 0, '0203 000000', compressionOf(solo)));
  },
  writing: (solo: Solo) => {
    steps(R.created, R.open)(solo);
    solo.requester.write();
    solo.hearMinimal('ACK(WRITE)');
    solo.requester.startSending(START);
    solo.sendArticles();
  },
  reading: (solo: Solo) => {
    steps(R.selected, R.open)(solo);
    solo.requester.read(START);
    solo.hearMinimal('ACK(READ)');
  },
  interrupted: (solo: Solo) => {
    steps(R.writing, interrupt, hear('ACK(IDT)'))(solo);
  },
};

const S = {
  connected: (solo: Solo) => {
    const { crc, points, access, resynchronisation } = solo.terms;
    const before = [crc ? '010101' : '', '030141 040142 060102', points ? '0703000108' : ''];
    const behind = [pi(22, num(access, 1)), resynchronisation ? '170101' : ''];
    solo.hear(fpdu('CONNECT', 0, PEER, ...before, ...behind));
    solo.server.acceptConnection({ syncPoints: SYNC, resynchronisation });
  },
  created: (solo: Solo) => {
    S.connected(solo);
    solo.hearMinimal('CREATE');
    solo.server.acceptCreate({ maxEntitySize: 4096, compression: solo.terms.compression });
  },
  selected: (solo: Solo) => {
    S.connected(solo);
    solo.hearMinimal('SELECT');
    solo.server.acceptSelect({
      maxEntitySize: 4096,
      fileName: 'F',
      transferId: 1,
      recordFormat: 128,
      recordLength: 1000,
      maxReservationKb: 1,
      compression: solo.terms.compression,
    });
  },
  open: (solo: Solo) => {
    solo.hear(fpdu('ORF', OWN, 0, compressionOf(solo)));
    solo.server.acceptOpen();
  },
  writing: (solo: Solo) => {
    steps(S.created, S.open, hear('WRITE'))(solo);
    solo.server.acceptWrite(START);
  },
  reading: (solo: Solo) => {
    steps(S.selected, S.open, hear('READ'))(solo);
    solo.server.acceptRead(START);
    solo.sendArticles();
  },
  interrupted: (solo: Solo) => {
    steps(S.writing, interrupt, hear('ACK(IDT)'))(solo);
  },
};

const own =
  (act: (session: RequesterSession) => void): Step =>
  (solo) => {
    act(solo.requester);
  };
const serverEnd: Step = (solo) => {
  solo.server.endData();
};

/** A state, or one of those that depend on how it was reached. */
export type SoloState = State | 'OF02 ended' | 'OF02 served';

/** The way into each state of either role. TDE06 and TDL06 are left at once: an IDT is answered before anything else. */
export const SOLO_WAYS: Readonly<Record<Role, Readonly<Partial<Record<SoloState, Step>>>>> = {
  requester: {
    CN02A: R.connect,
    CN03: R.connected,
    CN04A: steps(
      R.connected,
      own((session) => {
        session.release();
      }),
    ),
    MG01A: steps(
      R.connected,
      own((session) => {
        session.sendMessage({ fileIdentifier: { fileType: 0xffff, fileName: 'F' }, transferId: 1 });
      }),
    ),
    SF01A: R.create,
    SF02A: R.select,
    SF03: R.created,
    SF03ab: steps(
      R.interrupted,
      own((session) => {
        session.close();
      }),
      hear('ACK(CRF)'),
    ),
    SF04A: steps(
      R.created,
      own((session) => {
        session.deselect();
      }),
    ),
    OF01A: steps(
      R.created,
      own((session) => {
        session.open();
      }),
    ),
    OF02: steps(R.created, R.open),
    OF02ab: R.interrupted,
    OF03A: steps(
      R.created,
      R.open,
      own((session) => {
        session.close();
      }),
    ),
    OF03Aab: steps(
      R.interrupted,
      own((session) => {
        session.close();
      }),
    ),
    TDE01A: steps(
      R.created,
      R.open,
      own((session) => {
        session.write();
      }),
    ),
    TDE02A: R.writing,
    TDE03: steps(R.writing, resynchronise),
    TDE04: steps(R.writing, hear('RESYN')),
    TDE05: steps(R.writing, interrupt),
    TDE07: steps(
      R.writing,
      own((session) => {
        session.endData();
      }),
    ),
    TDE08A: steps(
      R.writing,
      own((session) => {
        session.endData();
        session.endTransfer();
      }),
    ),
    TDL01A: steps(
      R.selected,
      R.open,
      own((session) => {
        session.read(START);
      }),
    ),
    TDL02A: R.reading,
    TDL03: steps(R.reading, resynchronise),
    TDL04: steps(R.reading, hear('RESYN')),
    TDL05: steps(R.reading, interrupt),
    TDL07: steps(R.reading, hear('DTF.END')),
    TDL08A: steps(
      R.reading,
      hear('DTF.END'),
      own((session) => {
        session.endTransfer();
      }),
    ),
  },
  server: {
    CN01: () => undefined,
    CN02B: hear('CONNECT'),
    CN03: S.connected,
    CN04B: steps(S.connected, hear('RELEASE')),
    MG01B: steps(S.connected, hear('MSG')),
    MG02B: steps(S.connected, hear('MSGDM')),
    SF01B: steps(S.connected, hear('CREATE')),
    SF02B: steps(S.connected, hear('SELECT')),
    SF03: S.created,
    SF03ab: steps(S.interrupted, hear('CRF'), (solo) => {
      solo.server.acceptClose();
    }),
    SF04B: steps(S.created, hear('DESELECT')),
    OF01B: steps(S.created, hear('ORF')),
    OF02: steps(S.created, S.open),
    'OF02 ended': steps(S.writing, hear('DTF.END', 'TRANS.END'), (solo) => {
      solo.server.acceptEnd();
    }),
    'OF02 served': steps(S.reading, serverEnd, hear('TRANS.END'), (solo) => {
      solo.server.acceptEnd();
    }),
    OF02ab: S.interrupted,
    OF03B: steps(S.created, S.open, hear('CRF')),
    OF03Bab: steps(S.interrupted, hear('CRF')),
    TDE01B: steps(S.created, S.open, hear('WRITE')),
    TDE02B: S.writing,
    TDE03: steps(S.writing, resynchronise),
    TDE04: steps(S.writing, hear('RESYN')),
    TDE05: steps(S.writing, interrupt),
    TDE07: steps(S.writing, hear('DTF.END')),
    TDE08B: steps(S.writing, hear('DTF.END', 'TRANS.END')),
    TDL01B: steps(S.selected, S.open, hear('READ')),
    TDL02B: S.reading,
    TDL03: steps(S.reading, resynchronise),
    TDL04: steps(S.reading, hear('RESYN')),
    TDL05: steps(S.reading, interrupt),
    TDL07: steps(S.reading, serverEnd),
    TDL08B: steps(S.reading, serverEnd, hear('TRANS.END')),
  },
};

/** A session in `state`, with nothing left to read or to send. */
export function solo(role: Role, state: SoloState, terms: SoloTerms = {}): Solo {
  const side = new Solo(role, terms);
  (SOLO_WAYS[role][state] as Step)(side);
  while (side.session.nextEvent() !== undefined);
  side.sent();
  const wanted = state.split(' ')[0];
  if (side.session.state !== wanted) throw new Error(`expected ${wanted}, got ${side.session.state}`);
  return side;
}
