/**
 * Help for the tests of every package: what each `FileStore` must do (`describeFileStore`), and an object store in memory
 * that does no more than object stores do.
 */
export { describeFileStore } from './file-store-contract.js';
export type { StoreUnderTest } from './file-store-contract.js';
export { MemoryObjectStore } from './memory-object-store.js';
