import { flow, Custom, Message } from '@robomotion/sdk';

// A loop of two agents. f.node('no', 'is', 'comment')
flow.create('0b7b0f5e-0000-4000-8000-000000000001', 'Refine', (f) => {
  f.addDependency('Robomotion.Agents', '0.15.0');

  f.node('aa0001', 'Robomotion.ChatAssistant.ChatIn', 'Chat In', {})
    .then('aa0002', 'Robomotion.Agents.Agent.LoopAgent', 'Loop Agent', {
      inName: Custom('refine'),
      inDescription: Custom('Refines a text.'),
      inQuery: Message('payload.text'),
      optMaxIterations: 2,
      optSubAgentsOrder: ['writer', 'critic'],
      optTimeout: 60,
    });
  f.node('aa0003', 'Robomotion.Agents.Agent.LLMAgent', 'LLM Agent', {
    inName: Custom('writer'), func: 'Write.\n' +
      'It\'s about {{user_input}}. \u00e9 \ud83d\ude80 Critic: {{critique}}', inOutputKey: Custom('draft'),
    optUseRobomotionCredits: true, optSkills: '[]'
  });
  f.node('aa0004', 'Robomotion.Agents.Agent.LLMAgent', "LLM Agent", {
    inName: Custom("critic"), func: `Criticise {{draft}}`, inOutputKey: Custom('critique'), optModelName: 'GPT-5 mini'
  });
  f.node('aa0005', 'Robomotion.Monitoring.DNS', 'DNS', { optRecordType: 'ALL' });

  f.edge('aa0002', 0, 'aa0003', 0);
  f.edge('aa0002', 0, 'aa0004', 0);
  f.edge('aa0004', 1, 'aa0005', 0);
}).start();
