/**
 * Help for tests: what each `Transport` must do (`describeTransport`, `describeNetwork`), and connections in memory for
 * sessions without sockets.
 */
export { MemoryNetwork, MemoryTransport } from './memory-transport.js';
export { describeNetwork } from './network-contract.js';
export type { NetworkUnderTest } from './network-contract.js';
export { describeTransport } from './transport-contract.js';
export type { TransportPeer, TransportUnderTest } from './transport-contract.js';
