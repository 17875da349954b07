'use strict';
// Texts of items are hostile: they become text nodes, never markup.
const by=(id)=>document.getElementById(id);
let view=null,busy=false,now=0,typing=null,note='';
function make(tag,name,text){const node=document.createElement(tag);if(name)node.className=name;if(text!==undefined)node.textContent=text;return node}
function button(key,text,act,name){const node=make('button',name);node.type='button';if(key)node.append(make('kbd','',key));node.append(text);node.addEventListener('click',act);return node}
// What would turn the direction of a line or hide is written out.
const plain=(text)=>text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,(c)=>'\\u'+c.charCodeAt(0).toString(16).padStart(4,'0'));
async function send(path,told){
  if(busy)return;
  busy=true;document.body.setAttribute('aria-busy','true');
  try{
    const options=told===undefined?{}:{method:'POST',headers:{'Content-Type':'application/json','X-Auxeval-Label':'1'},body:JSON.stringify(told)};
    const answer=await fetch(path,options);
    if(answer.status===403||answer.status===413||answer.status===400){warn(await answer.text());return}
    const fresh=await answer.json();
    if(fresh.phase){const other=!view||!view.item||!fresh.item||view.item.key!==fresh.item.key;view=fresh;if(answer.ok)note='';draw(other)}
    warn(fresh.message);
  }catch(error){warn('The server does not answer. What was kept is kept: start auxeval label again and open the address it prints.')}
  finally{busy=false;document.body.removeAttribute('aria-busy');document.documentElement.dataset.ready='1'}
}
function warn(text){by('message').hidden=!text;by('message').textContent=plain(text||'')}
function draw(other){
  by('title').textContent=plain(view.title);document.title='Label: '+plain(view.title);
  by('plan').textContent=plain(view.question);
  const bar=by('bar');bar.hidden=!view.total;bar.max=Math.max(view.total,1);bar.value=view.done;
  by('far').textContent=view.total?view.done+' of '+view.total+(view.question?' of this sheet':'')+' · '+plain(view.rater):plain(view.rater);
  typing=null;by('typed').hidden=true;
  by('work').hidden=view.phase!=='label';
  tell();
  if(view.phase==='label'){if(other)item();questions()}
  keys();
  if(other&&view.phase==='label'){window.scrollTo(0,0)}
}
function tell(){
  const heads={waiting:'Your part is done',look:'The sheet is full',looked:'What the plan says',end:view.says.length?'':'Done'};
  const said=by('said');said.replaceChildren();said.hidden=view.phase==='label';
  if(said.hidden)return;
  if(heads[view.phase])said.append(make('p','head',heads[view.phase]));
  if(view.phase==='look')said.append(make('p','','Enter takes a look: labels count from then on. u takes the last answer back first.'));
  for(const line of view.says)said.append(make('p','',plain(line.trim())));
  if(view.phase==='end')said.append(make('p','summary','Enter ends; the terminal says what comes next.'));
}
function text(place,head,name){
  const one=view.item.texts[place],part=make('section',name);
  if(!one.text)return null;
  if(head)part.append(make('h2','',head));
  const pre=make('pre','',plain(one.text));pre.tabIndex=0;pre.setAttribute('aria-label',head||'Question');part.append(pre);
  if(one.left){
    const more=button('','Show all ('+one.left.toLocaleString('en')+' more characters)',async()=>{
      const whole=await fetch('/text?item='+view.item.key+'&place='+place);
      if(whole.ok){pre.textContent=plain(await whole.text());more.remove()}else warn('That text is not shown any more; reload the page.')});
    part.append(more);
  }
  return part;
}
const letters='ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const called=(k)=>view.item.responses.length>1?'Response '+(letters[k]||k+1):'Response';
function item(){
  const room=by('item');room.replaceChildren();
  for(const [place,head,name] of [[0,'','question'],[1,'Context','context'],[2,'Reference','reference']]){const part=text(place,head,name);if(part)room.append(part)}
  const all=make('div','answers');
  view.item.responses.forEach((unit,k)=>{
    const part=text(3+2*k,unit?called(k):(view.item.responses.length>1?'An answer':'The answer'),'');
    const context=text(4+2*k,'Context of '+called(k),'');
    if(context)all.append(context);
    if(part)all.append(part);
  });
  room.append(all);
}
function questions(){
  const room=by('questions');room.replaceChildren();
  now=view.item.asked.findIndex((one)=>one.said===null);if(now<0)now=0;
  view.item.asked.forEach((one,k)=>{
    const row=make('div','ask'+(k===now?' now':''));row.setAttribute('role','group');
    const place=view.item.responses.indexOf(one.unit);
    const what=make('div','what',plain(one.question));what.id='q'+k;row.setAttribute('aria-labelledby','q'+k);
    if(k===now)row.setAttribute('aria-current','step');
    what.append(make('small','',(place>=0&&view.item.responses.length>1?called(place)+' · ':'')+plain(one.criterion)));
    row.append(what);
    one.choices.forEach((choice,c)=>{
      const node=button(k===now?keyOf(one,c):'',choice,()=>say(k,choice));
      const value=one.kind==='yes-no'?(one.said===1?'yes':one.said===0?'no':null):one.said===null?null:String(one.said);
      node.setAttribute('aria-pressed',String(value===choice));row.append(node);
    });
    if(!one.choices.length)row.append(button(k===now?'Enter':'',one.said===null?'Type the answer':plain(String(one.said)),()=>type('say',k)));
    room.append(row);
  });
  const first=view.item.asked[now];
  if(!first.choices.length)type('say',now);else if(document.activeElement===document.body||!document.activeElement)room.focus({preventScroll:true});
}
function keyOf(one,c){return one.kind==='yes-no'?one.choices[c][0]:one.kind==='scale'?one.choices[c]:c<9?String(c+1):''}
function say(k,said){const one=view.item.asked[k];send('/say',{unit:one.unit,criterion:one.criterion,said,note})}
function type(kind,k){
  typing={kind,k};const one=kind==='say'?view.item.asked[k]:null;
  by('what').textContent=kind==='skip'?'Why is it skipped? (Enter: cannot tell)':kind==='note'?'Note, kept with your next answer':plain(one.question)+(one.kind==='number'?' ('+one.bounds[0]+' to '+one.bounds[1]+')':'');
  by('line').value=kind==='note'?note:'';by('typed').hidden=false;by('line').focus({preventScroll:kind==='say'});
}
by('typed').addEventListener('submit',(event)=>{
  event.preventDefault();const line=by('line').value,asked=typing;if(!asked||busy)return;
  if(asked.kind==='note'){note=line;shut();keys()}
  else if(asked.kind==='skip')send('/skip',{item:view.item.key,reason:line,note});
  else if(line.trim())say(asked.k,line);
});
function shut(){typing=null;by('typed').hidden=true;by('questions').focus({preventScroll:true});if(view.item&&!view.item.asked[now].choices.length)type('say',now)}
by('close').addEventListener('click',shut);
const noteKey=()=>view.item&&view.item.asked[now].kind==='yes-no'?'m':'n';
function acts(){
  const list=[];
  if(view.phase==='label')list.push(['s','Skip',()=>type('skip')],[noteKey(),note?'Note ✓':'Note',()=>type('note')]);
  if(view.phase==='look')list.push(['Enter','Look',()=>{by('said').append(make('p','','Looking…'));send('/look',{})}]);
  if(view.phase==='looked')list.push(['Enter','Next items',()=>send('/go-on',{})]);
  if(view.phase==='end')list.push(['Enter','End',end]);
  if(view.phase==='end'&&view.more)list.push(['g','Go on all the same',()=>send('/go-on',{})]);
  if(view.phase==='waiting')list.push(['r','Look again',()=>send('/view')]);
  if(view.undo)list.push(['u','Undo',()=>send('/undo',{})]);
  return list;
}
async function end(){await send('/end',{});by('keys').replaceChildren();by('said').append(make('p','','Ended. You can close this page.'));view=null}
function keys(){by('keys').replaceChildren(...acts().map(([key,text,act],k)=>button(key,text,act,k===0&&view.phase!=='label'?'first':'')))}
document.addEventListener('keydown',(event)=>{
  if(!view||event.repeat||event.ctrlKey||event.metaKey||event.altKey||event.isComposing)return;
  if(event.target.id==='line'){
    // In a line that waits for an answer, keys write; Escape leaves it, and Skip and Undo are buttons or come after Escape.
    if(event.key==='Escape'){event.preventDefault();typing=null;by('typed').hidden=true;by('questions').focus()}
    return;
  }
  const key=event.key.length===1?event.key.toLowerCase():event.key;
  if(key==='Enter'&&event.target.tagName==='BUTTON')return;
  if(view.phase==='label'){
    const one=view.item.asked[now],c=one.choices.findIndex((_,k)=>keyOf(one,k).toLowerCase()===key);
    if(c>=0){event.preventDefault();say(now,one.choices[c]);return}
    if(key==='Enter'&&!one.choices.length){event.preventDefault();type('say',now);return}
  }
  const act=acts().find(([name])=>name===key);
  if(act&&!busy){event.preventDefault();act[2]()}
});
setInterval(()=>{if(view&&view.phase==='waiting'&&!busy)send('/view')},3000);
send('/view');
