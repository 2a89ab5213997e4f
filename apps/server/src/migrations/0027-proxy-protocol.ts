import type { Migration } from '@pesit-node/service';

/** Balancers in front of a listener, and whether they say from where partners come. */
export const proxyProtocol: Migration = {
  name: '0027-proxy-protocol',
  up: async (knex) => {
    await knex.raw(`
      alter table listeners
        add column proxy_protocol text not null default 'off' check (proxy_protocol in ('off', 'optional', 'required')),
        add column trusted_proxies text[] not null default '{}'`);
  },
};
