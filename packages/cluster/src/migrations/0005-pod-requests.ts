import type { Migration } from '@pesit-node/service';

/** Questions of one pod to another, as long as somebody waits for the answer: they need not outlive a crash. */
export const podRequests: Migration = {
  name: '0005-pod-requests',
  up: async (knex) => {
    await knex.raw(`
      create unlogged table pod_requests (
        id uuid primary key,
        instance uuid not null,
        kind text not null,
        subject text not null,
        answer jsonb,
        asked_at timestamptz not null default now(),
        answered_at timestamptz
      );
      create index pod_requests_open on pod_requests (instance) where answered_at is null;`);
  },
};
