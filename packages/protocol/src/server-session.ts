/** The server's end (serveur): every FPDU of the requester becomes an event, and each is answered by `accept…` or `refuse…`. */
import { selectedParameters } from './answers.js';
import type { ConnectAnswer, CreateAnswer, SelectAnswer } from './answers.js';
import type { SyncPoint } from './articles.js';
import type { Fpdu } from './decoding.js';
import type { CompressionMode } from './compression.js';
import { countsToSend } from './counts.js';
import { SUCCESS } from './diagnostics.js';
import { PesitError } from './errors.js';
import type { DiagnosticCode } from './diagnostics.js';
import type { FpduName } from './fpdus.js';
import { MAX_MESSAGE_LENGTH, MessageAssembly, REPLY_EXPECTED } from './messages.js';
import type { MessageAnswer } from './messages.js';
import {
  MIN_ENTITY_SIZE,
  canResynchronise,
  compressionOptions,
  intervalBytes,
  negotiateCompression,
  negotiateSync,
  negotiateVersion,
} from './negotiation.js';
import { describeParameter } from './parameters.js';
import type { Parameters } from './parameters.js';
import { Session } from './session.js';
import type { SessionOptions } from './session-events.js';
import { free, textForPeer } from './texts.js';

/** Proposals of a request, kept until it is answered. */
interface Pending {
  readonly parameters: Parameters;
  readonly name: FpduName;
}

/** Parameters by which the secured profile is asked for; a first byte of 0 asks for nothing (§4.7.3). */
const SECURED = ['authenticationType', 'sealingType', 'encryptionType', 'signatureType'] as const;

const NEGATIVE: Partial<Record<FpduName, FpduName>> = {
  CREATE: 'ACK(CREATE)',
  SELECT: 'ACK(SELECT)',
  ORF: 'ACK(ORF)',
  WRITE: 'ACK(WRITE)',
  READ: 'ACK(READ)',
};

export class ServerSession extends Session {
  #pending: Pending | undefined;
  /** A segmented message that is coming in. */
  #message: MessageAssembly | undefined;
  #entitySize = 0;
  #allowedCompression: CompressionMode | 0 = 0;
  #askedCompression: CompressionMode | 0 | undefined;
  #recordLength = 0xffff;

  constructor(options: SessionOptions) {
    super('server', options, undefined);
  }

  override get entitySize(): number {
    return this.#entitySize;
  }

  /** PI 21 as the ORF of the file asked for it; undefined before. */
  get askedCompression(): CompressionMode | 0 | undefined {
    return this.#askedCompression;
  }

  /** True while `name` waits for its answer: not after an interruption or the end of the connection. */
  awaits(name: FpduName): boolean {
    return this.phase === 'open' && this.#pending?.name === name;
  }

  /** ACONNECT (§4.4.2), with the terms negotiated from the CONNECT and `answer`. */
  acceptConnection(answer: ConnectAnswer): void {
    const { parameters } = this.#take('CONNECT');
    const version = negotiateVersion(parameters.version) ?? 2;
    const sync = negotiateSync(parameters.syncPoints, answer.syncPoints);
    const resynchronisation = canResynchronise(parameters.resynchronisation === 1, answer.resynchronisation, sync);
    this.terms = {
      dialect: this.options.dialect,
      version,
      crc: this.reader.crc,
      syncInterval: intervalBytes(sync, answer.defaultIntervalKb ?? 256),
      syncWindow: sync.window,
      resynchronisation,
      accessType: parameters.accessType as number,
    };
    this.receiveWindow = sync.window;
    this.acknowledges = sync.window > 0;
    if (answer.singleArticle !== undefined) this.data.receiver.style = answer.singleArticle;
    this.data.layout = {
      multiArticle: answer.multiArticle ?? this.data.layout.multiArticle,
      concatenation: answer.concatenation ?? this.data.layout.concatenation,
    };
    this.send('ACONNECT', {
      version,
      // Always there: partners of the field expect it even when it was not proposed.
      syncPoints: sync,
      ...(parameters.resynchronisation === undefined ? {} : { resynchronisation: resynchronisation ? 1 : 0 }),
      ...free(answer.freeMessage),
    });
  }

  /** RCONNECT (§4.4.3). */
  refuseConnection(reason: PesitError): void {
    this.#take('CONNECT');
    this.send('RCONNECT', { diagnostic: reason.diagnostic, ...textForPeer(reason) });
    this.end(reason, 'closing');
  }

  /** ACK(CREATE) (§4.4.5). */
  acceptCreate(answer: CreateAnswer): void {
    const { parameters } = this.#take('CREATE');
    this.#agree(parameters, answer);
    this.#recordLength = parameters.logicalAttributes?.recordLength ?? 0xffff;
    this.direction = 'writing';
    this.send(
      'ACK(CREATE)',
      { diagnostic: SUCCESS, maxEntitySize: this.#entitySize, ...free(answer.freeMessage) },
      '+',
    );
  }

  /** ACK(SELECT) (§4.4.7). */
  acceptSelect(answer: SelectAnswer): void {
    const { parameters } = this.#take('SELECT');
    this.#agree(parameters, answer);
    this.direction = 'reading';
    this.send('ACK(SELECT)', selectedParameters(parameters, answer, this.#entitySize), '+');
  }

  /**
   * ACK(ORF) (§4.4.11). PI 21 is answered when it was asked: with what both sides want of it.
   * @param allowed what is allowed of it; default what the answer to CREATE or SELECT said
   */
  acceptOpen(allowed = compressionOptions(this.#allowedCompression)): void {
    const { parameters } = this.#take('ORF');
    this.#askedCompression = negotiateCompression(parameters.compression, compressionOptions(3)).mode;
    const compression = negotiateCompression(parameters.compression, allowed);
    this.data.compression = compression.mode;
    this.send(
      'ACK(ORF)',
      { diagnostic: SUCCESS, ...(parameters.compression === undefined ? {} : { compression }) },
      '+',
    );
  }

  /** ACK(WRITE) (§4.4.17): the point from which the requester shall send, with its totals. */
  acceptWrite(from: SyncPoint): void {
    this.#take('WRITE');
    this.data.startReceiving(from, this.#recordLength);
    this.send('ACK(WRITE)', { diagnostic: SUCCESS, restartPoint: from.number }, '+');
  }

  /** ACK(READ) (§4.4.15): `from` is our record of the point that READ named. */
  acceptRead(from: SyncPoint): void {
    this.#take('READ');
    this.startSender(from);
    this.send('ACK(READ)', { diagnostic: SUCCESS }, '+');
  }

  /** A negative ACK of CREATE, SELECT, ORF, WRITE or READ; the session stays usable for the next file. */
  refuse(reason: PesitError): void {
    const request = this.#pending;
    const answer = request === undefined ? undefined : NEGATIVE[request.name];
    if (request === undefined || answer === undefined) throw new Error(`nothing to refuse (${this.describeState()})`);
    this.#take(request.name);
    const attributes =
      answer === 'ACK(CREATE)'
        ? { maxEntitySize: request.parameters.maxEntitySize as number }
        : answer === 'ACK(WRITE)'
          ? { restartPoint: 0 }
          : {};
    this.send(answer, { diagnostic: reason.diagnostic, ...attributes, ...textForPeer(reason) }, '-');
  }

  /** ACK(TRANS.END) (§4.4.19): the file is delivered. */
  acceptEnd(): void {
    this.#take('TRANS.END');
    this.data.ended = true;
    this.send('ACK(TRANS.END)', { diagnostic: SUCCESS, ...countsToSend(this.totals) });
  }

  /** A negative ACK(TRANS.END): the file is not delivered; it is still closed and deselected. */
  refuseEnd(reason: PesitError): void {
    this.#take('TRANS.END');
    this.data.ended = true;
    const { diagnostic } = reason;
    this.send('ACK(TRANS.END)', { diagnostic, ...countsToSend(this.totals), ...textForPeer(reason) });
  }

  /** ACK(CRF) (§4.4.13). */
  acceptClose(): void {
    this.#take('CRF');
    this.send('ACK(CRF)', { diagnostic: SUCCESS });
  }

  /** ACK(DESELECT) (§4.4.9). */
  acceptDeselect(): void {
    this.#take('DESELECT');
    this.direction = undefined;
    this.send('ACK(DESELECT)', { diagnostic: SUCCESS });
  }

  /** RELCONF (§4.4.27); the connection is over. */
  acceptRelease(): void {
    this.#take('RELEASE');
    this.send('RELCONF', {});
    this.end(undefined, 'closing');
  }

  /**
   * A positive ACK(MSG) (§4.4.32): the message is stored.
   * @throws PesitError fault `local` when the reply is longer than PI 91; the message waits on for its answer
   */
  acceptMessage(answer: MessageAnswer = {}): void {
    const { parameters } = this.#request('MSG');
    const { reply, dataCode } = answer;
    if (reply !== undefined && parameters.attributesWanted !== REPLY_EXPECTED)
      throw new Error('the message asks for no reply (PI 14)');
    this.send('ACK(MSG)', {
      diagnostic: SUCCESS,
      ...(reply === undefined || dataCode === undefined ? {} : { dataCode }),
      ...(reply === undefined || reply.length === 0 ? {} : { message: reply }),
    });
    this.#pending = undefined;
  }

  /** A negative ACK(MSG) (§4.4.32). */
  refuseMessage(reason: PesitError): void {
    this.#pending = undefined;
    this.send('ACK(MSG)', { diagnostic: reason.diagnostic, ...textForPeer(reason) });
  }

  protected override forgetRequest(): void {
    this.#pending = undefined;
  }

  protected override apply(fpdu: Fpdu): void {
    if (fpdu.name === 'MSGDM' || fpdu.name === 'MSGMM' || fpdu.name === 'MSGFM') {
      this.#applySegment(fpdu.name, fpdu.parameters);
      return;
    }
    const { name, parameters } = fpdu;
    this.#pending = { name, parameters };
    switch (name) {
      case 'CONNECT':
        if ((parameters.crc === 1) !== this.reader.crc) {
          const [asked, came] = this.reader.crc ? ['no CRC', 'with one'] : ['a CRC', 'without one'];
          this.notice(`CONNECT asks for ${asked} (PI 1) and came ${came}: the connection continues ${came}`);
        }
        if (negotiateVersion(parameters.version) === undefined) {
          const text = `version ${parameters.version} (PI 6) is not supported: use 2`;
          this.refuseConnection(new PesitError(text, { fault: 'remote', diagnostic: '3-308' }));
          return;
        }
        break;
      case 'CREATE':
      case 'SELECT':
        if (this.#refusesFile(name, parameters)) return;
        break;
      case 'TRANS.END':
        this.checkCounts(name, parameters, false);
        break;
      default:
        break;
    }
    this.emit({ kind: 'FPDU', name, parameters });
  }

  /** A segmented message becomes one MSG with the whole text. */
  #applySegment(name: 'MSGDM' | 'MSGMM' | 'MSGFM', parameters: Parameters): void {
    if (name === 'MSGDM') this.#message = new MessageAssembly(parameters);
    else this.#message?.add(parameters);
    if (name !== 'MSGFM') return;
    const { head = {} } = this.#message ?? {};
    const whole = this.#message?.end();
    this.#message = undefined;
    if (whole === undefined) {
      const text = `the message is longer than the ${MAX_MESSAGE_LENGTH} bytes that are taken`;
      const error = new PesitError(text, { fault: 'remote', diagnostic: '2-209' });
      this.refuseMessage(error);
      this.emit({ kind: 'REFUSED', name: 'MSG', parameters: head, error });
      return;
    }
    this.#pending = { name: 'MSG', parameters: whole };
    this.emit({ kind: 'FPDU', name: 'MSG', parameters: whole });
  }

  /** Refusals that the protocol alone decides about a file, before the application is asked. */
  #refusesFile(name: 'CREATE' | 'SELECT', parameters: Parameters): boolean {
    const size = parameters.maxEntitySize as number;
    if (size < MIN_ENTITY_SIZE) {
      throw new PesitError(`${name}: expected PI 25 of at least ${MIN_ENTITY_SIZE}, got ${size}`, {
        fault: 'remote',
        diagnostic: '3-318',
        expected: `at least ${MIN_ENTITY_SIZE}`,
        got: `${size}`,
      });
    }
    const refuse = (diagnostic: DiagnosticCode, text: string): boolean => {
      const error = new PesitError(text, { fault: 'remote', diagnostic });
      this.refuse(error);
      this.emit({ kind: 'REFUSED', name, parameters, error });
      return true;
    };
    const writeOnly = this.terms?.accessType === 0;
    const readOnly = this.terms?.accessType === 1;
    if (name === 'CREATE' ? readOnly : writeOnly) {
      return refuse('3-305', `the connection was opened to ${readOnly ? 'read' : 'write'} only (PI 22)`);
    }
    const secured = SECURED.find((key) => (parameters[key]?.[0] ?? 0) !== 0);
    if (secured !== undefined) {
      return refuse('2-226', `the secured profile is not supported, ${describeParameter(secured)}: send without it`);
    }
    if (name === 'CREATE' && parameters.transferId === 0)
      return refuse('3-318', 'the transfer identifier (PI 13) must not be 0');
    if (name === 'CREATE' && parameters.logicalAttributes?.recordLength === 0) {
      return refuse('2-200', 'the record length (PI 32) must not be 0');
    }
    return false;
  }

  #agree(parameters: Parameters, answer: CreateAnswer): void {
    this.data.select();
    this.#entitySize = Math.min(parameters.maxEntitySize as number, answer.maxEntitySize);
    this.#allowedCompression = answer.compression ?? 0;
    this.#askedCompression = undefined;
  }

  #take(name: FpduName): Pending {
    const pending = this.#request(name);
    this.#pending = undefined;
    return pending;
  }

  #request(name: FpduName): Pending {
    const pending = this.#pending;
    if (pending?.name !== name) throw new Error(`there is no ${name} to answer (${this.describeState()})`);
    return pending;
  }
}
