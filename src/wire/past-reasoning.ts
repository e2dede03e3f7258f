/**
 * Models that refuse to continue without their reasoning, wherever they are served: many sellers only pass it on.
 * Spelled as their own vendors and those that resell them do (`kimi-k2p5`).
 */
export const remembersReasoning =
  /deepseek-(?:reasoner|flash|v(?:3[.p][2-9]|[4-9]))|kimi-k(?:2[.p][5-9]|2-thinking|[3-9])/i
