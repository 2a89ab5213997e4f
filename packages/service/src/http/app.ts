import type { IncomingMessage } from 'node:http';

import { reasonOf } from '@pesit-node/ground';
import express, { Router } from 'express';
import type { Express, RequestHandler } from 'express';
import helmet from 'helmet';

import { basicAuth } from '../auth/basic-auth.js';
import { loginRoutes } from '../auth/routes.js';
import type { VerifyCredentials } from '../auth/basic-strategy.js';
import type { FailureLimiterOptions } from '../auth/failure-limiter.js';
import { LoginGuard } from '../auth/login-guard.js';
import { callerOf } from '../auth/roles.js';
import { configuredApiKey, configuredLogins } from '../auth/logins.js';
import type { CommonConfig } from '../config/keys.js';
import { keysWithoutEffect } from '../config/unused.js';
import type { KeyWithoutEffect } from '../config/unused.js';
import { ApiError, unavailable } from '../errors.js';
import { eventStream } from '../events/event-stream.js';
import type { EventStream } from '../events/event-stream.js';
import { OPERATION_DONE } from '../events/events.js';
import { logService, meterLogins } from '../events/service-log.js';
import type { HealthRegistry } from '../health/registry.js';
import { healthRoutes, infoRoutes } from '../health/routes.js';
import type { ServiceInfo } from '../health/routes.js';
import type { Logger } from '../logging.js';
import type { Metrics } from '../metrics/metrics.js';
import { metricsRoutes } from '../metrics/routes.js';
import { liveNetworkMatcher } from '../networks.js';
import { documentRoutes } from '../openapi/routes.js';
import type { PeriodicWork } from '../periodic/periodic-work.js';
import { accessLog } from './access-log.js';
import { contentDigest } from './content-digest.js';
import { errorHandler, notFoundHandler } from './error-handler.js';
import { requestBound } from './request-bound.js';
import { Routes } from './routes.js';
import type { MountedOperation, OperationOutcome } from './routes.js';
import { sameOrigin } from './same-origin.js';

export interface HttpAppOptions {
  readonly config: Pick<
    CommonConfig,
    | 'http.max-body'
    | 'http.max-connections'
    | 'http.trusted-proxies'
    | 'metrics.public'
    | 'admin.username'
    | 'admin.password'
  > &
    Partial<CommonConfig>;
  readonly info: ServiceInfo;
  readonly logger: Logger;
  readonly health: HealthRegistry;
  readonly metrics: Metrics;
  /** The stream of the node; default: one of its own. */
  readonly events?: EventStream;
  /** Mounts the routes of the app, behind login and body parser. Use `routes.resource` and `endpoint`. */
  readonly routes: (routes: Routes) => void;
  /** Mounts routes that need no login, before it. Nothing of the license or of the database is asked for them. */
  readonly open?: (routes: Routes) => void;
  /** Pages for a browser, which need no login: asked before it, it answers what is its own. */
  readonly pages?: RequestHandler;
  /** While not ready, the app's routes answer 503 with the reason. A `DatabaseSupervisor` fits. */
  readonly database?: { readonly ready: boolean; readonly statusReason: string | undefined };
  /** For `/actuator/info`. Default: what the configuration alone tells. */
  readonly keysWithoutEffect?: () => readonly KeyWithoutEffect[];
  /** For `/actuator/info`. Default: nothing happens by itself. */
  readonly periodic?: Pick<PeriodicWork, 'status'>;
  /** Default: `admin.username`, and the users of `admin.users`. */
  readonly verify?: VerifyCredentials;
  /** How often a login may fail. */
  readonly loginLimits?: FailureLimiterOptions;
  /** Behind the login and before anything of the body is read: may answer instead of every route but the probes. */
  readonly gate?: RequestHandler;
}

const databaseGate =
  (database: NonNullable<HttpAppOptions['database']>): RequestHandler =>
  (_req, _res, next) => {
    if (database.ready) next();
    else next(unavailable(`The database is not available (${database.statusReason ?? 'unknown reason'}): try again`));
  };

/** As the body parser throws it. @param limit bytes */
const tooLarge = (limit: number): Error =>
  Object.assign(new Error('request entity too large'), { type: 'entity.too.large', limit });

/**
 * The body of JSON, whose limit may change. Longer ones are refused at once: the parser alone would read them to their end first, which
 * the caller decides on.
 */
const jsonBody = (limit: () => number): RequestHandler => {
  let of: number | undefined;
  const verify = (req: IncomingMessage, _res: unknown, body: Buffer): void => {
    const digest = contentDigest(req.headers['content-digest']?.toString());
    digest?.update(body);
    digest?.end();
  };
  let parse: RequestHandler = express.json({ verify });
  return (req, res, next) => {
    const now = limit();
    if (now !== of) [of, parse] = [now, express.json({ limit: now, verify })];
    if (req.is('application/json') === false) {
      next();
      return;
    }
    let received = 0;
    const count = (piece: Buffer): void => {
      received += piece.length;
      if (received > now) over(tooLarge(now));
    };
    const state = { isOver: false };
    const over = (error?: unknown): void => {
      if (state.isOver) return;
      state.isOver = true;
      req.off('data', count);
      next(error);
    };
    if (Number(req.headers['content-length'] ?? 0) > now) {
      over(tooLarge(now));
      return;
    }
    void parse(req, res, over);
    // After the parser has begun to listen: nothing of the body is missed by it.
    if (!state.isOver) req.on('data', count);
  };
};

/** Forbids caching: an answer is true now, and for the caller alone. */
const noStore: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store');
  next();
};

/** Differs from helmet's policy: no answer is for a frame, a base address, or a form. */
const POLICY = {
  baseUri: ["'none'"],
  frameAncestors: ["'none'"],
  formAction: ["'none'"],
  // The service may speak HTTP behind whatever ends TLS: asking browsers for HTTPS would break it on any host but localhost.
  upgradeInsecureRequests: null,
};

/** RFC 6797 §7.2: of secure connections alone, ours or those of a trusted proxy. */
const strictTransport: RequestHandler = (req, res, next) => {
  if (req.secure) res.setHeader('Strict-Transport-Security', 'max-age=31536000');
  next();
};

/** For an app without a node: before one is there, and in tests. */
const ownStream = (logger: Logger): EventStream => eventStream({ app: 'server', node: '' }, logger);

/** Says on the event stream what was done. */
const publishing =
  (events: EventStream) =>
  ({ req, operation, path, error }: OperationOutcome): void => {
    // The path goes from what holds the object to the object itself.
    const object = Object.values(req.params).at(-1);
    events.publish(OPERATION_DONE, {
      by: callerOf(req),
      audit: operation.audit,
      method: req.method,
      path,
      recorded: operation.recorded ?? false,
      object: typeof object === 'string' ? object : undefined,
      error:
        error === undefined
          ? undefined
          : { code: error instanceof ApiError ? error.code : 'INTERNAL_ERROR', message: reasonOf(error) },
    });
  };

const declared = new WeakMap<Express, () => readonly MountedOperation[]>();

/** Every operation of an app that `createHttpApp` made, as it was declared. */
export const operationsOfApp = (app: Express): readonly MountedOperation[] => declared.get(app)?.() ?? [];

/**
 * The Express app of a service; it does not listen. In order: request id and log line, headers, the origin of what may change
 * something, the open probes and pages, login, gate, the document of the interface, JSON body, the app's routes, 404, error bodies. Nothing
 * of a body is read before the login.
 */
export const createHttpApp = (options: HttpAppOptions): Express => {
  const { config, info, logger, health, metrics, routes, database, gate } = options;
  const { verify = configuredLogins(config, logger), loginLimits: limits = {}, events = ownStream(logger) } = options;
  logService(events, logger, limits.now === undefined ? {} : { now: limits.now });
  meterLogins(events, metrics);
  const login = basicAuth(verify, new LoginGuard({ events, limits }), configuredApiKey(config));
  const app = express();
  app.disable('x-powered-by');
  // `?a[b]=1` stays a strange name, and is refused as an unknown field.
  app.set('query parser', 'simple');
  app.set('etag', false);
  app.set(
    'trust proxy',
    liveNetworkMatcher(() => config['http.trusted-proxies']),
  );
  app.use(accessLog(logger));
  app.use(noStore);
  app.use(helmet({ contentSecurityPolicy: { directives: POLICY }, frameguard: { action: 'deny' }, hsts: false }));
  app.use(strictTransport);
  app.use(sameOrigin);
  // Open to everybody, and behind the login.
  const [free, known] = [Router(), Router()];
  const within = (router: Router): Routes => new Routes(undefined, router);
  const probes = within(free);
  healthRoutes(probes, health, login);
  const isPublic = config['metrics.public'];
  const figures = within(isPublic ? free : known);
  const { keysWithoutEffect: unused = () => keysWithoutEffect(config) } = options;
  const access = isPublic ? 'open' : 'licensed';
  const periodicWork = () => options.periodic?.status ?? [];
  infoRoutes(figures, { info, access, login, keysWithoutEffect: unused, periodicWork });
  metricsRoutes(figures, metrics, access);
  const who = within(known);
  loginRoutes(who, info, () => config['console.peer-url']);
  const open = within(free);
  options.open?.(open);
  const own = new Routes(publishing(events));
  routes(own);
  const documents = within(known);
  documentRoutes(documents, info, () => [probes, who, figures, open, own].flatMap(({ mounted }) => mounted));
  declared.set(app, () => [probes, who, figures, open, documents, own].flatMap(({ mounted }) => mounted));

  app.use(free);
  if (options.pages !== undefined) app.use(options.pages);
  app.use(login);
  app.use(requestBound(() => config['http.max-connections']));
  // Without the database nobody knows what the gate would say; the routes then answer 503 with the reason.
  if (gate !== undefined) app.use((req, res, next) => (database?.ready === false ? next() : gate(req, res, next)));
  app.use(known);
  app.use(jsonBody(() => config['http.max-body']));
  if (database !== undefined) app.use(databaseGate(database));
  app.use(own.router);
  app.use(notFoundHandler);
  app.use(errorHandler(logger));
  return app;
};
