import { endpointAt } from '../serve.ts'
import { responses } from './respond.ts'

/**
 * OpenAI's newer protocol, in which an answer is a list of items. The simulator stores no answers to be fetched later.
 */
export const responsesProtocol = endpointAt('/responses', responses)
