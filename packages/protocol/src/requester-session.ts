/** The requester's end (demandeur): it opens the connection and drives; the verbs are its FPDUs, in the order of §4.8.4. */
import { START } from './articles.js';
import type { SyncPoint } from './articles.js';
import type { Fpdu } from './decoding.js';
import { countsToSend } from './counts.js';
import { SUCCESS, refuses } from './diagnostics.js';
import { PesitError } from './errors.js';
import type { PeerDiagnostic } from './diagnostics.js';
import {
  MIN_ENTITY_SIZE,
  NO_SYNC,
  acceptedCompression,
  canResynchronise,
  compressionOptions,
  intervalBytes,
  negotiateSync,
  negotiateVersion,
} from './negotiation.js';
import type { CompressionOptions, Parameters, SyncPointOptions } from './parameters.js';
import { messageFpdus } from './messages.js';
import type { MessageRequest } from './messages.js';
import { createParameters, selectParameters } from './requests.js';
import type { ConnectRequest, CreateRequest, FileRequest, SelectRequest } from './requests.js';
import { Session } from './session.js';
import type { SessionOptions } from './session-events.js';
import { free } from './texts.js';

export class RequesterSession extends Session {
  #asked: SyncPointOptions = NO_SYNC;
  #askedCrc: boolean;
  #askedResynchronisation = false;
  #accessType = 2;
  #defaultIntervalKb = 256;
  /** Compression wanted by the request, and by the last ORF. */
  #wantedCompression: CompressionOptions | undefined;
  #askedCompression: CompressionOptions | undefined;
  #entitySize = 0;
  #recordLength = 0xffff;
  #readFrom: SyncPoint = START;

  /** @param crc PI 1: whether the connection will use CRC; it changes the framing, so it is known before CONNECT */
  constructor(options: SessionOptions, crc = false) {
    super('requester', options, crc);
    this.#askedCrc = crc;
  }

  /** CONNECT (§4.4.1). */
  connect(request: ConnectRequest): void {
    this.#asked = request.syncPoints ?? NO_SYNC;
    this.#askedResynchronisation = request.resynchronisation === true && this.#asked.intervalKb > 0;
    this.#accessType = request.accessType;
    this.#defaultIntervalKb = request.defaultIntervalKb ?? 256;
    this.send('CONNECT', {
      ...(this.#askedCrc ? { crc: 1 } : {}),
      requester: request.requester,
      server: request.server,
      ...(request.password ? { accessControl: request.password } : {}),
      version: 2,
      ...(this.#asked.intervalKb > 0 ? { syncPoints: this.#asked } : {}),
      accessType: request.accessType,
      ...(this.#askedResynchronisation ? { resynchronisation: 1 } : {}),
      ...free(request.freeMessage),
    });
  }

  /** CREATE (§4.4.4): a file to write. */
  create(request: CreateRequest): void {
    this.#propose(request);
    this.#recordLength = request.recordLength;
    this.send('CREATE', createParameters(request));
    this.direction = 'writing';
    this.data.select();
  }

  /** SELECT (§4.4.6): a file to read. */
  select(request: SelectRequest): void {
    this.#propose(request);
    this.send('SELECT', selectParameters(request));
    this.direction = 'reading';
    this.data.select();
  }

  /**
   * ORF (§4.4.10). `fileTerms` holds what the server agreed on.
   * @param compression asked for as PI 21; default that of the request
   */
  open(compression = this.#wantedCompression): void {
    this.#askedCompression = compression;
    this.send('ORF', compression === undefined ? {} : { compression });
  }

  /** WRITE (§4.4.16); after ACK(WRITE) comes `startSending`. */
  write(): void {
    this.send('WRITE', {});
  }

  /** Starts the data after a positive ACK(WRITE): `from` is our record of the point that PI 18 named. */
  startSending(from: SyncPoint): void {
    if (!this.sending) throw new Error(`no data may be sent (${this.describeState()})`);
    this.startSender(from);
  }

  /** READ (§4.4.14) from the point that is on stable storage here; number 0 is the start of the file. */
  read(from: SyncPoint): void {
    this.#readFrom = from;
    this.send('READ', { restartPoint: from.number });
  }

  /** TRANS.END (§4.4.18) with the totals, when all data were sent, or received and stored. */
  endTransfer(): void {
    this.send('TRANS.END', countsToSend(this.totals));
  }

  /** CRF (§4.4.12). */
  close(diagnostic: PeerDiagnostic = SUCCESS): void {
    this.send('CRF', { diagnostic });
  }

  /** DESELECT (§4.4.8). */
  deselect(diagnostic: PeerDiagnostic = SUCCESS): void {
    this.send('DESELECT', { diagnostic });
    this.direction = undefined;
  }

  /**
   * MSG, or MSGDM, MSGMM…, MSGFM when the text exceeds one entity (§4.4.31). The answer is ACK(MSG), with PI 91 when a reply
   * was asked for.
   * @throws PesitError fault `local` when a value does not fit; nothing is sent then
   */
  sendMessage(request: MessageRequest): void {
    for (const { name, parameters } of messageFpdus(request, this.terms?.crc === true)) this.send(name, parameters);
  }

  /** RELEASE (§4.4.26). */
  release(): void {
    this.send('RELEASE', { diagnostic: SUCCESS });
  }

  protected override apply(fpdu: Fpdu): void {
    const { parameters } = fpdu;
    const { diagnostic = SUCCESS } = parameters;
    const accepted = !refuses(diagnostic);
    switch (fpdu.name) {
      case 'ACONNECT':
        this.#establish(fpdu);
        break;
      case 'RCONNECT':
        this.end(
          this.refusal('refused the connection', parameters.diagnostic as PeerDiagnostic, parameters),
          'closing',
        );
        return;
      case 'RELCONF':
        this.end(undefined, 'closing');
        return;
      case 'ACK(CREATE)':
      case 'ACK(SELECT)':
        if (accepted) this.#selected(parameters);
        else this.direction = undefined;
        break;
      case 'ACK(ORF)':
        if (accepted) this.#opened(parameters.compression);
        break;
      case 'ACK(READ)':
        if (accepted) this.data.startReceiving(this.#readFrom, this.#recordLength);
        break;
      case 'ACK(TRANS.END)':
        // Counts of a refusal mean nothing.
        if (diagnostic === SUCCESS) this.checkCounts(fpdu.name, parameters, true);
        break;
      default:
        break;
    }
    this.emit({ kind: 'FPDU', name: fpdu.name, parameters });
  }

  #propose({ maxEntitySize, compression = 0 }: FileRequest): void {
    this.#entitySize = maxEntitySize;
    this.#wantedCompression = compression === 0 ? undefined : compressionOptions(compression);
  }

  #opened(answered: CompressionOptions | undefined): void {
    this.data.compression = acceptedCompression(this.#askedCompression, answered);
    if (this.#askedCompression?.used === true && this.data.compression === 0)
      this.notice('ACK(ORF): compression was asked for (PI 21), the partner agrees to none: it goes without');
  }

  #establish(fpdu: Fpdu): void {
    const version = negotiateVersion(fpdu.parameters.version);
    if (version === undefined) {
      throw new PesitError(`ACONNECT: expected version 1 or 2 (PI 6), got ${fpdu.parameters.version}`, {
        fault: 'remote',
        diagnostic: '3-308',
        expected: 'version 1 or 2',
        got: String(fpdu.parameters.version),
      });
    }
    const answered = fpdu.parameters.syncPoints;
    const sync = negotiateSync(answered, this.#asked);
    if (
      answered !== undefined &&
      (answered.intervalKb > this.#asked.intervalKb || answered.window > this.#asked.window)
    ) {
      this.notice(`ACONNECT: PI 7 is larger than what was asked: ${sync.intervalKb} KB, window ${sync.window} stay`);
    }
    this.terms = {
      dialect: this.options.dialect,
      version,
      crc: this.#askedCrc,
      syncInterval: intervalBytes(sync, this.#defaultIntervalKb),
      syncWindow: sync.window,
      resynchronisation: canResynchronise(this.#askedResynchronisation, fpdu.parameters.resynchronisation === 1, sync),
      accessType: this.#accessType,
    };
    // Some servers send by their own window, however small the one that was asked for.
    this.receiveWindow = sync.window === 0 ? 0 : Math.max(this.#asked.window, answered?.window ?? 0);
    // A server that answers a window where none was asked for waits for its acknowledgements.
    this.acknowledges = sync.intervalKb > 0 && (answered?.window ?? 0) > 0;
  }

  #selected(parameters: Parameters): void {
    const answered = parameters.maxEntitySize as number;
    if (answered < MIN_ENTITY_SIZE) {
      throw new PesitError(`expected PI 25 of at least ${MIN_ENTITY_SIZE}, got ${answered}`, {
        fault: 'remote',
        diagnostic: '3-318',
        expected: `at least ${MIN_ENTITY_SIZE}`,
        got: `${answered}`,
      });
    }
    this.#entitySize = Math.min(this.#entitySize, answered);
    // PI 32 bounds what we receive; what we send was bounded by our own request.
    if (this.direction === 'reading') this.#recordLength = parameters.logicalAttributes?.recordLength ?? 0xffff;
  }

  override get entitySize(): number {
    return this.#entitySize;
  }
}
