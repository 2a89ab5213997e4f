/**
 * Spans of OpenTelemetry, made from the events of sessions and transfers: a session is a span, and each attempt of a transfer is
 * one below it. Loaded by `spansStep` alone, when there is a collector.
 *
 * Attributes are named here one by one: what an event carries beside them, such as passwords of a remote server, is never sent.
 */
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Span } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';

import {
  SESSION_ENDED,
  SESSION_OPENED,
  SESSION_REFUSED,
  TRANSFER_BEGAN,
  TRANSFER_DELIVERED,
  TRANSFER_ENDED,
  TRANSFER_REFUSED,
  TRANSFER_WENT_ON,
} from '../events.js';
import type { Facts, Figures, ObservedSession, ObservedTransfer } from '../events.js';
import type { SpansOptions } from './options.js';

/** Spans that wait to be sent; more are lost, and nothing waits for them. */
const MAX_WAITING = 2048;
/** Characters of an attribute: some come from partners. */
const MAX_TEXT = 256;
const SEND_MS = 5000;

/** Facts of a session that become attributes, and their names there. */
const SESSION_FACTS: Readonly<Record<string, string>> = {
  listener: 'pesit.listener',
  server: 'pesit.server',
  partner: 'pesit.partner',
  remoteAddress: 'network.peer.address',
  dialect: 'pesit.dialect',
};

const sessionAttributes = (
  { id, facts }: Partial<ObservedSession> & { readonly facts: Facts },
  more: Facts,
): Attributes => {
  const known = Object.entries({ ...facts, ...more }).flatMap(([name, value]) => {
    const attribute = Object.hasOwn(SESSION_FACTS, name) ? SESSION_FACTS[name] : undefined;
    return attribute === undefined || typeof value !== 'string' ? [] : [[attribute, value] as const];
  });
  return { ...Object.fromEntries(known), ...(id === undefined ? {} : { 'pesit.session.id': id }) };
};

const figures = (at: Figures | undefined): Attributes =>
  at === undefined ? {} : { 'pesit.data_bytes': at.dataBytes, 'pesit.sync_point': at.syncPoint };

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : '').slice(0, MAX_TEXT);

/** @returns what sends the last spans, and ends it */
export const exportSpans = ({ config, app, version, node, events }: SpansOptions): (() => Promise<void>) => {
  const authorization = config['otel.authorization'];
  const exporter = new OTLPTraceExporter({
    url: `${config['otel.endpoint'].replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: SEND_MS,
    ...(authorization === '' ? {} : { headers: { Authorization: authorization } }),
  });
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      ...{ 'service.name': `pesit-${app}`, 'service.version': version, 'service.instance.id': node },
    }),
    spanLimits: { attributeValueLengthLimit: MAX_TEXT },
    spanProcessors: [new BatchSpanProcessor(exporter, { maxQueueSize: MAX_WAITING, exportTimeoutMillis: SEND_MS })],
  });
  const tracer = provider.getTracer('pesit-node');
  const kind = app === 'server' ? SpanKind.SERVER : SpanKind.CLIENT;
  const sessions = new Map<ObservedSession, Span>();
  const transfers = new Map<ObservedTransfer, Span>();
  /** A requester begins a transfer before it has a session: that is linked, then. */
  const begunIn = new WeakMap<ObservedTransfer, ObservedSession>();

  const below = (session: ObservedSession | undefined) => {
    const parent = session && sessions.get(session);
    return parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent);
  };
  const fail = (span: Span, diagnostic: string | undefined, error: unknown): void => {
    if (diagnostic !== undefined) span.setAttribute('pesit.diagnostic', diagnostic);
    span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
  };

  const subscriptions = [
    events.subscribe(SESSION_OPENED, ({ session, facts }) => {
      const attributes = sessionAttributes(session, facts);
      sessions.set(session, tracer.startSpan('pesit session', { kind, attributes }, ROOT_CONTEXT));
    }),
    events.subscribe(SESSION_REFUSED, ({ session, diagnostic, error, facts }) => {
      const attributes = sessionAttributes(session, facts);
      const span = tracer.startSpan('pesit session', { kind, attributes }, ROOT_CONTEXT);
      fail(span, diagnostic, error);
      span.end();
    }),
    events.subscribe(SESSION_ENDED, ({ session, error }) => {
      const span = sessions.get(session);
      if (span === undefined) return;
      sessions.delete(session);
      if (error !== undefined) fail(span, error.diagnostic, error);
      span.end();
    }),
    events.subscribe(TRANSFER_BEGAN, ({ session, transfer }) => {
      const { id, type, direction, peer, name } = transfer;
      const attributes: Attributes = {
        ...{ 'pesit.transfer.id': String(id), 'pesit.transfer.type': type, 'pesit.direction': direction },
        ...{ 'pesit.peer': peer, ...(name === undefined ? {} : { 'pesit.file.name': name }) },
      };
      const title = direction === 'SEND' ? 'pesit send' : 'pesit receive';
      if (session !== undefined) begunIn.set(transfer, session);
      transfers.set(transfer, tracer.startSpan(title, { kind, attributes }, below(session)));
    }),
    events.subscribe(TRANSFER_WENT_ON, ({ session, transfer, from, attempt }) => {
      const span = transfers.get(transfer);
      const late = session === undefined || begunIn.get(transfer) === session ? undefined : sessions.get(session);
      if (late !== undefined) span?.addLink({ context: late.spanContext() });
      span?.addEvent('data from', { ...figures(from), 'pesit.attempt': attempt });
    }),
    events.subscribe(TRANSFER_DELIVERED, ({ transfer, size }) => {
      transfers.get(transfer)?.addEvent('delivered', { 'pesit.file.size': size });
    }),
    events.subscribe(TRANSFER_ENDED, ({ transfer, status, diagnostic, error }) => {
      const span = transfers.get(transfer);
      if (span === undefined) return;
      transfers.delete(transfer);
      // Without a status another attempt follows.
      span.setAttributes({ ...figures(transfer.progress()), 'pesit.status': status ?? 'PENDING' });
      if (status !== 'COMPLETED') fail(span, diagnostic, error);
      span.end();
    }),
    events.subscribe(TRANSFER_REFUSED, ({ session, type, direction, peer, status, diagnostic, error }) => {
      const attributes: Attributes = { 'pesit.transfer.type': type, 'pesit.direction': direction, 'pesit.peer': peer };
      const title = direction === 'SEND' ? 'pesit send' : 'pesit receive';
      const span = tracer.startSpan(title, { kind, attributes }, below(session));
      span.setAttribute('pesit.status', status);
      fail(span, diagnostic, error);
      span.end();
    }),
  ];

  return async () => {
    for (const end of subscriptions) end();
    for (const span of [...transfers.values(), ...sessions.values()]) span.end();
    // Spans that a collector does not take are lost, as while the service runs.
    await provider.shutdown().catch(() => undefined);
  };
};
