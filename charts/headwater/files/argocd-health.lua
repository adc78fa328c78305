-- How Argo CD judges a Realm or a Catalog: as kstatus does, by status.observedGeneration and the conditions Stalled and Ready.
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The operator has not seen this generation yet"}
end
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local stalled, ready = conditions.Stalled, conditions.Ready
if stalled ~= nil and stalled.status == "True" then
  return {status = "Degraded", message = stalled.reason .. ": " .. stalled.message}
end
if ready == nil then
  return {status = "Progressing", message = "The operator has not said yet whether it is ready"}
end
if ready.status == "True" then
  return {status = "Healthy", message = status.message or ""}
end
return {status = "Progressing", message = ready.reason .. ": " .. ready.message}
