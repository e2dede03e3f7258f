/**
 * What a model refuses although its protocol allows it. A translated request is written so that it keeps these rules;
 * one that passes through is the client's own.
 */
export const modelRules = [
  /** Anthropic: thinking is switched off by `between_tools`; the model refuses `disabled`. */
  'rests-between-tools',
  /** Anthropic: the model calls a tool only by its own choice, and refuses a request that forces a call. */
  'refuses-forced-calls',
  /** Anthropic: the model refuses its own earlier thinking where anything before that has changed since. */
  'binds-thinking',
] as const
export type ModelRule = (typeof modelRules)[number]
