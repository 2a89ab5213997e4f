/**
 * Help for the tests of every package: databases (`withDatabase`), loggers, configuration.
 * `withDatabase` gives each test file databases of its own, so that jest's workers run side by side. Each test file loads all of this:
 * hostile requests, whose alphabet alone takes a second, stand apart (`@pesit-node/service/testing/hostile`).
 */
export { columnProblems } from './columns.js';
export { testConfig } from './config.js';
export { withDatabase, emptyTables } from './with-database.js';
export type { DatabaseHarness, OpenTestDatabaseOptions, TestDatabase } from './with-database.js';
export { findDatabase, holdAnswer, holdStatement, loseAnswer, loseDatabase } from './database-faults.js';
export { TestEventReader } from './event-reader.js';
export type { ReadEvent } from './event-reader.js';
export { watchEvents } from './events.js';
export type { Heard } from './events.js';
export { freePort } from './free-port.js';
export { captureLog, silentLogger } from './logger.js';
export type { CapturedLog } from './logger.js';
export { violations } from './json-schema.js';
export type { ViolationOptions } from './json-schema.js';
export { readOpenMetrics, testMetrics } from './metrics.js';
export { sendExamples } from './examples.js';
export { answerViolations, exchangedOf, operationFor, operationsOf, resolveIn, routesOf } from './openapi.js';
export type { Exchanged } from './openapi.js';
export { attributesOf, otlpReceiver } from './otlp.js';
export type { ReceivedSpan } from './otlp.js';
export { plansOf } from './plans.js';
export { selfSigned } from './pem.js';
export { loggedIn, roleViolations, usersOfRoles } from './roles.js';
export { commonResources } from './common-resources.js';
export { describePutBack } from './put-back.js';
export type { Changeable, PutBackOptions } from './put-back.js';
export { structureProblems } from './openapi-structure.js';
