/**
 * The part that both apps share outside PeSIT.
 *
 * An app's `main.ts` calls `runService`, the builder of every service, with what differs. It loads the configuration
 * (`LiveConfig`, one table of keys, `CONFIG_KEYS`), makes a logger (`createLogger`, secrets masked), takes the port, opens secrets
 * (`openSecretBox`) and database (`openDatabase`: a PostgreSQL, its own where none is named), and hangs what the app builds on a
 * `Lifecycle`, which starts the steps in order and stops them in reverse on SIGTERM, readiness first.
 *
 * A `DatabaseSupervisor` waits for the database, migrates it and follows it down and up. `createHttpApp` puts login, limits, error
 * bodies, probes and metrics around the app's own routes, which are written with `Routes`, `endpoint`, `pagingFields` and `ApiError`.
 * `PasswordHasher` and `PasswordVerifier` keep what must not be read.
 *
 * Nothing here reads the environment, knows a resource of an app, or speaks PeSIT.
 */
export { Audit } from './audit/audit.js';
export type { AuditChange, AuditOptions, AuditWrite, ChangeAudit } from './audit/audit.js';
export { Collapse } from './audit/collapse.js';
export { SYSTEM } from './audit/entry.js';
export type { Caller, NewAuditEntry } from './audit/entry.js';
export { auditService } from './audit/follow.js';
export { auditRoutes } from './audit/routes.js';
export { createAuditTables } from './audit/tables.js';
export { verifyAudit } from './audit/verify.js';
export { auditVerify } from './audit/verify-command.js';
export type { AuditVerdict } from './audit/verify.js';
export type { VerifyCredentials } from './auth/basic-strategy.js';
export { callerOf, ROLES, loginOf, reaches } from './auth/roles.js';
export type { Login, Role } from './auth/roles.js';
export { rolesMarkdown } from './auth/roles-markdown.js';
export { FailureLimiter } from './auth/failure-limiter.js';
export type { FailureLimiterOptions } from './auth/failure-limiter.js';
export { CONFIG_KEYS } from './config/keys.js';
export type { AppName, CommonConfig, Config, ConfigKeyName } from './config/keys.js';
export { LiveConfig } from './config/live.js';
export { ConfigError, configWarnings, loadConfig } from './config/load.js';
export type { ListCheck, LoadConfigOptions } from './config/load.js';
export { createDeclaredTables } from './declared/tables.js';
export { DeclaredList } from './declared/declared-list.js';
export type { DeclaredItem, DeclaredListOptions } from './declared/declared-list.js';
export { DeclaredObjects } from './declared/declared-objects.js';
export type { DeclaredObjectsOptions } from './declared/declared-objects.js';
export type { DeclaredResource } from './declared/resource.js';
export { isRemoteServer } from './declared/servers.js';
export { configurationMarkdown } from './config/markdown.js';
export { tlsProtocolOf } from './config/ssl-keys.js';
export type { TlsProtocolConfig } from './config/ssl-keys.js';
export { keysWithoutEffect } from './config/unused.js';
export type { KeyWithoutEffect } from './config/unused.js';
export { Batches, jsonBytes, jsonRows, oncePerKey } from './database/batches.js';
export type { BatchesOptions } from './database/batches.js';
export { DirectoryLockedError } from './database/directory-lock.js';
export { EmbeddedDatabaseError } from './database/embedded/error.js';
export {
  isCheckViolation,
  isDatabaseUnavailable,
  isForeignKeyViolation,
  isUniqueViolation,
} from './database/faults.js';
export { hotStatement } from './database/hot-statement.js';
export type { HotStatement } from './database/hot-statement.js';
export type { Listening, ListeningOptions } from './database/listening.js';
export { migrate, MigrationError } from './database/migrate.js';
export type { Migration, MigrationSet, SchemaName } from './database/migrate.js';
export { DATABASE_SSL_MODES, DatabaseTlsError } from './database/database-tls.js';
export { openDatabase } from './database/open.js';
export type { OpenDatabaseOptions } from './database/open.js';
export { databaseMetrics } from './database/database-metrics.js';
export { DatabaseSupervisor } from './database/supervisor.js';
export type { SupervisorOptions } from './database/supervisor.js';
export type { Database, DatabaseMode } from './database/types.js';
export {
  API_ERRORS,
  ApiError,
  capital,
  conflict,
  notBuiltYet,
  notFound,
  unavailable,
  unprocessable,
  validation,
} from './errors.js';
export type { ApiErrorCode, ApiErrorOptions, FieldError } from './errors.js';
export { CertificateFileError, RestCertificate } from './https/certificate.js';
export type { HttpsTools, RestIdentity, RestKeystores } from './https/certificate.js';
export { EventKind, EventStream, eventStream } from './events/event-stream.js';
export type { EventStreamOptions, Published } from './events/event-stream.js';
export { CONFIGURATION_CHANGED, LOGIN_FAILED, LOGIN_SUCCEEDED, OPERATION_DONE } from './events/events.js';
export { fieldRoutes } from './fields/routes.js';
export type { FieldResource } from './fields/routes.js';
export type { ComputedOf, CreateOf, FieldRow, FieldRows, GivenOf, RowOf, ValuesOf, ViewOf } from './fields/row.js';
export { RequestFields } from './fields/requests.js';
export type { KeptOf, RequestField } from './fields/requests.js';
export { FieldService } from './fields/service.js';
export type { FieldServiceOptions } from './fields/service.js';
export { FieldStore } from './fields/store.js';
export { deletionQuery, IN_USE, refuseUsed, useOf } from './fields/deletion.js';
export type { Uses } from './fields/deletion.js';
export { listAnswer, listed, listRows } from './fields/lists.js';
export type { Listed, ListQuery } from './fields/lists.js';
export { FieldTable } from './fields/table.js';
export type { KeepSecret, Resource } from './fields/table.js';
export {
  containing,
  equal,
  flagFilter,
  givenConditions,
  patternFilter,
  textFilter,
  wordsFilter,
} from './history/conditions.js';
export { exportRoutes } from './history/export.js';
export type { ExportOptions, FlatRecord } from './history/export.js';
export { historyPageOf, historyPagingFields } from './history/fields.js';
export type { HistoryKey, HistoryPage } from './history/fields.js';
export { History } from './history/history.js';
export type { HistoryMapping, HistoryPaging } from './history/history.js';
export { HistoryRetention, retentionDays } from './history/retention.js';
export type { EndedStatus, RetentionOptions } from './history/retention.js';
export { HistoryStatistics } from './history/statistics.js';
export { GROUPS, statisticsAnswer, statisticsFields } from './history/statistics-answer.js';
export type { GroupBy, Statistics } from './history/statistics-answer.js';
export { createSumTables } from './history/sum-tables.js';
export { HistorySums } from './history/sums.js';
export type { HistorySumsOptions, SummedTable } from './history/sums.js';
export type { Condition, HistoryBounds, HistoryTable, Period, Way } from './history/table.js';
export { HealthRegistry } from './health/registry.js';
export { reasonsOf } from './health/registry.js';
export type { HealthCheck, HealthComponent, HealthReport } from './health/registry.js';
export type { ServiceInfo } from './health/routes.js';
export { createHttpApp, operationsOfApp } from './http/app.js';
export type { HttpAppOptions } from './http/app.js';
export type { ErrorBody } from './http/error-body.js';
export { startingApp } from './http/starting-app.js';
export { contentDigest } from './http/content-digest.js';
export { answerFile, OCTET_STREAM } from './http/file-answer.js';
export type { AnsweredFile } from './http/file-answer.js';
export { formParts } from './http/multipart.js';
export type { FormPart } from './http/multipart.js';
export { count, fetchPage, pageOf, pagingFields, periodFields } from './http/paging.js';
export type { Page, PageMapping, Paging, PagingOptions, Sort } from './http/paging.js';
export { roleOf, Routes } from './http/routes.js';
export type { Access, Answer, Endpoint, Method, MountedOperation, Operation, ResourceMethods } from './http/routes.js';
export { identifier, oneOrMore, orDefault, plainText, readOnly, rowId, storedTime, timestamp } from './http/schemas.js';
export { check, endpoint } from './http/validate.js';
export type { EndpointInput } from './http/validate.js';
export { EventLog } from './live/event-log.js';
export type { LoggedEvent } from './live/event-log.js';
export { EventReaders } from './live/event-readers.js';
export type { EventReader, EventReadersOptions } from './live/event-readers.js';
export { eventText } from './live/event-text.js';
export type { LiveEvent } from './live/event-text.js';
export { LeaseClock, renewalMs, renewTogether } from './leases/lease-clock.js';
export type { LeaseTerms, LeaseTime } from './leases/lease-clock.js';
export { LeaseWatch } from './leases/lease-watch.js';
export { DATA_MARK, DataDirectoryError, prepareDataDirectory } from './lifecycle/data-directory.js';
export { Lifecycle } from './lifecycle/lifecycle.js';
export type { LifecycleOptions, LifecycleStep } from './lifecycle/lifecycle.js';
export { lookUpOutside, refuseLinkLocal, whyNotAsked } from './link-local.js';
export { listen, ListenError } from './lifecycle/listen.js';
export type { HttpServer, ListenOptions } from './lifecycle/listen.js';
export { runMain } from './lifecycle/main-guard.js';
export { runService } from './lifecycle/run-service.js';
export type {
  BuiltService,
  FirstStage,
  ServiceDefinition,
  ServiceGround,
  ServiceProcess,
} from './lifecycle/run-service.js';
export { LogBudget } from './log-budget.js';
export type { LogBudgetOptions } from './log-budget.js';
export { createLogger } from './logging.js';
export type { Logger, LoggerOptions } from './logging.js';
export { isNetwork, liveNetworkMatcher, networkMatcher } from './networks.js';
export { METRICS } from './metrics/table.js';
export { metricsMarkdown } from './metrics/markdown.js';
export { Metrics } from './metrics/metrics.js';
export type { MetricsOptions, Reading, Readings, Sample } from './metrics/metrics.js';
export type { MetricName } from './metrics/table.js';
export { asBase64, isPlain, isReadable, readBytes, showBytes, utf8 } from './opaque-text.js';
export { openApiDocument } from './openapi/document.js';
export type { OpenApiDocument } from './openapi/document.js';
export type { AsLeader } from './periodic/as-leader.js';
export { PeriodicWork } from './periodic/periodic-work.js';
export type { PeriodicHandle, PeriodicStatus, PeriodicTask, PeriodicWorkOptions } from './periodic/periodic-work.js';
export { meterKeyUse } from './secrets/key-use.js';
export type { KeyUse, SecretColumn } from './secrets/key-use.js';
export { hashPassword, PasswordHasher } from './secrets/password.js';
export { PasswordHashError } from './secrets/password-hash.js';
export type { PasswordCost } from './secrets/password-hash.js';
export { PasswordVerifier, UncheckedPasswordError } from './secrets/password-verifier.js';
export type { CheckOrigin, PasswordVerifierOptions } from './secrets/password-verifier.js';
export { rotateSecrets } from './secrets/rotation.js';
export type { Rotation, RotationOptions } from './secrets/rotation.js';
export { SecretBox, SecretError } from './secrets/secret-box.js';
export { openSecretBox, secretKeyFile } from './secrets/secret-key.js';
export { TRACE_LIMITS } from './traces/limits.js';
export { Traces } from './traces/recorder.js';
export type { NewRecording, TracesOptions } from './traces/recorder.js';
export type { SessionRecording, TraceMark } from './traces/recording.js';
export { traceRoutes } from './traces/routes.js';
export type { TraceRoutesOptions } from './traces/routes.js';
export { createTraceTables } from './traces/tables.js';
export { SessionTracer } from './traces/tracer.js';
