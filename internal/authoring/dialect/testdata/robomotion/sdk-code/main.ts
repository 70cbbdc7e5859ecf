import { flow } from '@robomotion/sdk';
flow.create('x', 'Code', (f) => {
  f.node('a', 'Robomotion.Agents.Agent.LoopAgent', 'Loop', { optMaxIterations: limit * 2 });
}).start();
